"""Each operation names an array type it has no kernels for; nothing falls back in silence."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from edgemill import kernels

FOREIGN: Any = memoryview(b"12345678")
ROWS: Any = SimpleNamespace(edge=FOREIGN)
MERGED: Any = SimpleNamespace(high=FOREIGN)
TOPOLOGY: Any = SimpleNamespace(low=FOREIGN)

OF_NO_ARRAYS = {"device", "nccl_id", "nccl_lack", "nccl_ranks", "nccl_spare", "on_host", "to_device", "to_host", "trim"}

CALLS: dict[str, Callable[[], object]] = {
    "add_up": lambda: kernels.add_up(FOREIGN, FOREIGN),
    "adjacency": lambda: kernels.adjacency(TOPOLOGY),
    "arrange": lambda: kernels.arrange(FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN),
    "cascade": lambda: kernels.cascade(TOPOLOGY, ROWS),
    "close_rows": lambda: kernels.close_rows(MERGED, FOREIGN, 0, 1),
    "compact": lambda: kernels.compact(ROWS, FOREIGN),
    "compact_peeling": lambda: kernels.compact_peeling(TOPOLOGY, FOREIGN),
    "count_closed": lambda: kernels.count_closed(FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN),
    "direct_mail": lambda: kernels.direct_mail(FOREIGN, 0, FOREIGN, []),
    "fixpoint": lambda: kernels.fixpoint(TOPOLOGY, ROWS, FOREIGN, 1),
    "hash_strings": lambda: kernels.hash_strings(FOREIGN, FOREIGN, FOREIGN),
    "host_inbox_words": lambda: kernels.host_inbox_words(FOREIGN, 2, 1),
    "host_mail": lambda: kernels.host_mail(FOREIGN, 0, [], 1, 1),
    "intersect": lambda: kernels.intersect(FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN),
    "least_up": lambda: kernels.least_up(FOREIGN, FOREIGN),
    "lookup": lambda: kernels.lookup(FOREIGN, FOREIGN),
    "maxima_at": lambda: kernels.maxima_at(FOREIGN, FOREIGN, 1),
    "merge_rows": lambda: kernels.merge_rows(FOREIGN, FOREIGN, FOREIGN, 1),
    "nest": lambda: kernels.nest(FOREIGN, FOREIGN, FOREIGN, 1),
    "order_pairs": lambda: kernels.order_pairs(FOREIGN, FOREIGN, 1, 1),
    "peeling": lambda: kernels.peeling(TOPOLOGY, FOREIGN),
    "pack_lists": lambda: kernels.pack_lists(FOREIGN, FOREIGN, FOREIGN, 0, 1),
    "reband": lambda: kernels.reband(FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN),
    "positions": lambda: kernels.positions(FOREIGN),
    "row_numbers": lambda: kernels.row_numbers(FOREIGN),
    "relayed_mail": lambda: kernels.relayed_mail(FOREIGN, 0, 2, 1, 1),
    "shard_mailbox": lambda: kernels.shard_mailbox(FOREIGN, 2, 1),
    "shard_peeling": lambda: kernels.shard_peeling(FOREIGN, FOREIGN, 2, 1, FOREIGN),
    "sort_keys": lambda: kernels.sort_keys(FOREIGN, 1),
    "sort_strings": lambda: kernels.sort_strings(FOREIGN, FOREIGN),
    "sums_at": lambda: kernels.sums_at(FOREIGN, FOREIGN, 1),
}


@pytest.mark.parametrize("operation", sorted({*kernels.__all__} - OF_NO_ARRAYS))
def test_other_arrays_are_refused(operation: str) -> None:
    with pytest.raises(TypeError, match=r"there are no kernels for arrays of type builtins\.memoryview"):
        CALLS[operation]()
