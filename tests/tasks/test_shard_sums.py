"""What must hold over the sums of all shards on GPUs. No GPU is needed to tell."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from edgemill.kernels.shard_sums import ShardSums
from edgemill.tasks.errors import InternalError
from edgemill.tasks.shards.on_gpu import ShardOnGpu, check_sums


def state(group: int, supports: int, **sums: int) -> ShardOnGpu:
    """Of one of two shards, at the end."""
    nothing = np.empty(0, np.int32)
    words = np.zeros(15, np.uint64)
    names = [field for field in ShardSums.__dataclass_fields__ if field != "spent"]
    for name, value in sums.items():
        words[names.index(name)] = value
    counted = ShardSums.of(words)
    return ShardOnGpu(group, 2, 3, 2, counted.left, nothing, nothing, nothing, supports, 9, 7, words, counted)


def both(left: int = 0) -> list[ShardOnGpu]:
    return [
        state(0, 20, sent=5, received=1, triangles=7, fingerprint=100, left=left),
        state(1, 10, sent=1, received=5, triangles=3, fingerprint=2**64 - 100, left=left),
    ]


def test_sums_that_agree() -> None:
    check_sums(both())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sent": 6}, "shards sent 7 messages, and 6 arrived"),
        ({"fingerprint": 101}, "do not agree on the λ of an edge"),
        ({"triangles": 8}, "shards removed 11 triangles; the supports say 10"),
    ],
)
def test_sums_that_do_not_agree(change: dict[str, Any], message: str) -> None:
    one, other = both()
    with pytest.raises(InternalError, match=message):
        check_sums([replace(one, sums=replace(one.sums, **change)), other])


def test_triangles_are_left_while_edges_are() -> None:
    one, other = both(left=4)
    check_sums([replace(one, supports=50), other])
