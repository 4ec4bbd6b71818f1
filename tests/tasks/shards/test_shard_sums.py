"""What must hold over the totals of all shards on GPUs. No GPU is needed to tell."""

from __future__ import annotations

from typing import Any

import pytest

from edgemill.tasks.errors import InternalError
from edgemill.tasks.shards.gpu.shard import ShardTotals, check_totals


def both(remaining: int = 0, standing: int = 0, left: int = 0) -> list[ShardTotals]:
    """Of two shards."""
    return [
        ShardTotals(5, 1, 100, 7, 20, standing, remaining, left, 4),
        ShardTotals(1, 5, 2**64 - 100, 3, 10 + remaining, 0, 0, left, 4),
    ]


@pytest.mark.parametrize("left", [0, 4])
def test_totals_that_agree(left: int) -> None:
    check_totals(both(remaining=6 * bool(left), standing=left, left=left))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sent": 6}, "shards sent 7 messages, but 6 arrived"),
        ({"fingerprint": 101}, "do not agree on the λ of an edge"),
        ({"triangles": 8}, "shards removed 11 triangles and count 0 more; the supports say 10"),
        ({"standing": 2}, "shards have 2 remaining edges instead of 0"),
        ({"left": 2}, "do not agree on the number of remaining edges"),
        ({"level": 5}, "do not agree on the number of remaining edges"),
    ],
)
def test_totals_that_do_not_agree(change: dict[str, Any], message: str) -> None:
    one, other = both()
    with pytest.raises(InternalError, match=message):
        check_totals([one._replace(**change), other])
