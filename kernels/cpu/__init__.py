"""The CPU backend: Numba kernels over NumPy arrays. Implements `kernels.backend.Backend`.

May import `kernels.graph`, `kernels.filters` and `kernels.runtime`. Start with `adjacency`. `peeling` removes edges,
`update` brings λ up to date after a batch of changes, `shards` peels a graph that several processes hold. `programs`
has the gathers and algorithms of vertex programs, and `arrays` the operations on plain arrays. `kernels` documents the
operations below. Those of shards are loaded at their first use.
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
from .peeling.filtering import Changes, Filtering
from .peeling.peel import Peeling
from .triangles import supports

if TYPE_CHECKING:
    from .shards.triangles import count_by_third_vertex, merge_rows, third_vertex_rows
    from .shards.triangles import to_merged_order as to_merged_order

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

_OF_SHARDS = {"count_by_third_vertex", "merge_rows", "third_vertex_rows", "to_merged_order"}


def __getattr__(name: str) -> Any:
    if name not in _OF_SHARDS:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(".shards.triangles", __name__), name)
