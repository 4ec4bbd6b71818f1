"""Each operation refuses arrays of a type that it has no kernels for, and names the type."""

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

OF_NO_ARRAYS = {"device", "finished_joined", "finished_to_host", "on_host", "to_device", "to_host", "trim"}

CALLS: dict[str, Callable[[], object]] = {
    "adjacency": lambda: kernels.adjacency(TOPOLOGY),
    "changes": lambda: kernels.changes(FOREIGN, FOREIGN),
    "third_vertex_rows": lambda: kernels.third_vertex_rows(MERGED, FOREIGN, 0, 1),
    "compact": lambda: kernels.compact(ROWS, FOREIGN),
    "count_by_third_vertex": lambda: kernels.count_by_third_vertex(FOREIGN, FOREIGN, FOREIGN, FOREIGN, FOREIGN),
    "filtering": lambda: kernels.filtering(TOPOLOGY, FOREIGN),
    "fixpoint": lambda: kernels.fixpoint(TOPOLOGY, ROWS, 1),
    "supports": lambda: kernels.supports(FOREIGN, FOREIGN),
    "join": lambda: kernels.join([FOREIGN, FOREIGN]),
    "lookup": lambda: kernels.lookup(FOREIGN, FOREIGN),
    "scatter_max": lambda: kernels.scatter_max(FOREIGN, FOREIGN, 1),
    "merge_rows": lambda: kernels.merge_rows(FOREIGN, FOREIGN, FOREIGN, 1),
    "nonzero": lambda: kernels.nonzero(FOREIGN),
    "number_marked": lambda: kernels.number_marked(FOREIGN),
    "nest": lambda: kernels.nest(FOREIGN, FOREIGN, FOREIGN, 1),
    "positions_by_group": lambda: kernels.positions_by_group(FOREIGN, 1),
    "order_pairs": lambda: kernels.order_pairs(FOREIGN, FOREIGN, 1, 1),
    "peeling": lambda: kernels.peeling(TOPOLOGY, FOREIGN),
    "bincount": lambda: kernels.bincount(FOREIGN, 1),
    "store": lambda: kernels.store(FOREIGN, FOREIGN, FOREIGN),
    "take": lambda: kernels.take(FOREIGN, FOREIGN),
    "total": lambda: kernels.total(FOREIGN),
    "row_numbers": lambda: kernels.row_numbers(FOREIGN),
    "scatter_sum": lambda: kernels.scatter_sum(FOREIGN, FOREIGN, 1),
}


@pytest.mark.parametrize("operation", sorted({*kernels.__all__} - OF_NO_ARRAYS))
def test_other_arrays_are_refused(operation: str) -> None:
    with pytest.raises(TypeError, match=r"arrays.*builtins\.memoryview"):
        CALLS[operation]()
