"""λ after a batch of insertions and deletions: counts of an order of peeling, and their change.

May import `kernels.graph`, `kernels.runtime`, `kernels.cpu.arrays`, `kernels.cpu.common_neighbours` and Numba. Start
with `merging`, which has the state that the others change, then `descent` (deletions) and `replay` (insertions).
`tasks.update` calls these functions, in this order. `levels`, `standing` and `live_rows` have the parts of `replay`.
`comparing` finds edges among others.
"""

from .comparing import among, mark_ends, rows_before
from .descent import Descent
from .live_rows import keep_later
from .merging import ADDED, REMOVED, Union, leave_out, level_ends, level_sums, merge, values_since
from .order_counts import order_counts
from .removed_triangles import least_of_triangles, removed_triangles
from .replay import Replayed, replay

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
