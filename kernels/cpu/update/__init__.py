"""λ after a batch of insertions and deletions: updates an order of peeling and its counts of triangles.

May import `kernels.graph`, `kernels.runtime`, `kernels.cpu.arrays`, `kernels.cpu.adjacency` and Numba. Start with
`merging`, which has the state that the other modules change, then `descent` (deletions) and `replay` (insertions).
`tasks.update` calls these functions in this order. `levels` and `standing` contain parts of `replay`; `triangles` finds
the triangles that a batch destroys.
"""

from .descent import Descent
from .merging import (
    ADDED,
    REMOVED,
    Union,
    among,
    leave_out,
    level_ends,
    level_sums,
    mark_ends,
    merge,
    rows_before,
    values_since,
)
from .replay import Replayed, keep_later, replay
from .triangles import least_of_triangles, order_counts, removed_triangles

__all__ = [
    "ADDED",
    "REMOVED",
    "Descent",
    "Replayed",
    "Union",
    "among",
    "keep_later",
    "least_of_triangles",
    "leave_out",
    "level_ends",
    "level_sums",
    "mark_ends",
    "merge",
    "order_counts",
    "removed_triangles",
    "replay",
    "rows_before",
    "values_since",
]
