"""λ after a batch of insertions and deletions: counts of an order of peeling, and their change.

May import `kernels.graph`, `kernels.runtime`, `kernels.cpu.arrays`, `kernels.cpu.common_neighbours` and Numba. Start
with `merging`, which has the state that the others change, then `descent` (deletions) and `replay` (insertions).
`tasks.update` calls these functions, in this order. `comparing` finds edges among others.
"""

from .changed_triangles import changed_triangles
from .comparing import among, rows_before
from .descent import descend
from .merging import ADDED, REMOVED, Union, leave_out, level_ends, merge
from .order_counts import order_counts
from .replay import replay

__all__ = [
    "ADDED",
    "REMOVED",
    "Union",
    "among",
    "changed_triangles",
    "descend",
    "leave_out",
    "level_ends",
    "merge",
    "order_counts",
    "replay",
    "rows_before",
]
