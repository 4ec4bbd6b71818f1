"""The CPU backend: Numba kernels over NumPy arrays. Implements `kernels.backend.Backend`.

May import `kernels.graph`, `kernels.filters`, `kernels.in_rows` and `kernels.runtime`. Start with `adjacency`.
`peeling` removes edges, `arrays` has operations on plain arrays, `shards` rows cut by the third vertex, `programs`
gathers of vertex programs. `kernels` documents the operations below. Those of shards are loaded at their first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ..runtime.cache import remove_unused
from .adjacency import adjacency, compact, row_numbers
from .arrays import (
    bincount,
    join,
    lookup,
    nonzero,
    number_marked,
    order_pairs,
    positions_by_group,
    scatter_max,
    scatter_sum,
    store,
    take,
)
from .fixpoint import Fixpoint
from .nest import nest
from .peeling.changes import Changes
from .peeling.filtering import Filtering
from .peeling.peel import Peeling
from .whole_triangles import supports

if TYPE_CHECKING:
    from .shards.merged_order import merge_rows
    from .shards.merged_order import to_merged_order as to_merged_order
    from .shards.third_vertex import count_by_third_vertex, third_vertex_rows

remove_unused()

__all__ = [
    "Changes",
    "Filtering",
    "Fixpoint",
    "Peeling",
    "adjacency",
    "bincount",
    "compact",
    "count_by_third_vertex",
    "join",
    "lookup",
    "merge_rows",
    "nest",
    "nonzero",
    "number_marked",
    "order_pairs",
    "positions_by_group",
    "row_numbers",
    "scatter_max",
    "scatter_sum",
    "store",
    "supports",
    "take",
    "third_vertex_rows",
]

_OF_SHARDS = {
    "count_by_third_vertex": ".shards.third_vertex",
    "to_merged_order": ".shards.merged_order",
    "merge_rows": ".shards.merged_order",
    "third_vertex_rows": ".shards.third_vertex",
}


def __getattr__(name: str) -> Any:
    if name not in _OF_SHARDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_OF_SHARDS[name], __name__), name)
