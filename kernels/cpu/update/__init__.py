"""λ after a batch of insertions and deletions: counts of an order of peeling, and their change.

May import `kernels.graph`, `kernels.runtime`, `kernels.cpu.arrays`, `kernels.cpu.common_neighbours` and Numba. Start
with `order_counts`, which has the definitions. `tasks.update` calls these functions.
"""

from .order_counts import KEY_BITS, first_counts, level_counts

__all__ = ["KEY_BITS", "first_counts", "level_counts"]
