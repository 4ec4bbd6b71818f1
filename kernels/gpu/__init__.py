"""The GPU backend: CUDA kernels over CuPy arrays. Implements `kernels.backend.Backend`; importing it imports CuPy.

May import `kernels`, but of `kernels.cpu` only `programs`, `arrays.shared_words` and `arrays.strings`. Start with
`peel`, then `runtime.source`, which compiles the CUDA sources of `kernels.cuda`. Modules have the names of their
counterparts in `kernels.cpu`. Modules without a counterpart (`whole_graph`, `streaming`, and mail and peeling in
`shards`) are not part of the backend: callers import them directly.
"""

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
from .filtering import Changes, Filtering
from .fixpoint import Fixpoint
from .nest import nest
from .peel import Peeling
from .shards.triangles import count_by_third_vertex, merge_rows, third_vertex_rows
from .triangles import supports

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
