"""The duration of a run for λ, predicted from edges and triangles, and of vertex programs in one block on CPUs.

The constants are fitted to whole runs of seven graphs, from 0.2 to 16 million edges, on two cores (docs/numbers.md):
within 30 %. More threads are worth less than their number, as peeling is bound by memory: fitted to R-MAT 20 and 22 on
16 cores. Other processors differ by a factor.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ...tasks.programs.program import Cost

START_SECONDS = 1.8
"""Start and end of Python and Dask, and loading of kernels."""
EDGE_SECONDS = 4e-7
"""For each edge: reading, numbering, orienting, publishing."""
TRIANGLE_SECONDS = 3e-8
"""For each triangle: counting and peeling."""
MEASURED_THREADS = 2
THREADS_EXPONENT = -0.2
BANDS_SHARE, BANDS_REST = 1.8, 0.02
"""Time of peeling in bands on P workers, as a share of one worker's: BANDS_SHARE / P + BANDS_REST. Fitted to counts for
P from 2 to 64 (docs/engineering/bands.md).
"""
LEFT_EXPONENT = 2 / 3
"""The remaining share of the work is the remaining share of the edges to this power. Counted for R-MAT 18, where work
is triangles and 50 for each edge.
"""
SHARDS_SHARE = 1.1
"""Time of peeling in shards over that of one worker with MEASURED_THREADS, for the remaining edges, whatever the number
of workers and threads: groups wait for each other in each round. Measured: 1.1 to 1.2, R-MAT 18 and 20, two shards on
two cores.
"""
GATHERING_SECONDS, GATHERED_EDGE_SECONDS = 0.3, 1.5e-7
"""Seconds to bring the remaining edges together, and additional seconds for each edge. Measured on the same cores."""


def predicted_seconds(edges: float, triangles: float, threads: int, workers: int = 1) -> float:
    """Seconds of the command `edgemill run` for λ alone on CPUs.

    `workers` peel bands, with this number of `threads` each.
    """
    reading = EDGE_SECONDS * edges * _speed_up(threads * workers)
    return START_SECONDS + reading + TRIANGLE_SECONDS * triangles * _speed_up(threads) * _share(workers)


def seconds_saved(left: int, edges: int, triangles: float, threads: int, workers: int) -> float:
    """Seconds saved by stopping shards when `left` of the `edges` with triangles remain, and peeling these in bands on
    `workers` workers with `threads` threads each, or on one worker. Negative if shards are faster.
    """
    work = TRIANGLE_SECONDS * triangles * float((min(left, edges) / max(edges, 1)) ** LEFT_EXPONENT)
    gathering = GATHERING_SECONDS + GATHERED_EDGE_SECONDS * min(left, edges)
    return work * (SHARDS_SHARE - _speed_up(threads) * _share(workers)) - gathering


def _share(workers: int) -> float:
    """The time of peeling in bands over one worker's."""
    return 1.0 if workers == 1 else BANDS_SHARE / workers + BANDS_REST


def _speed_up(threads: int) -> float:
    return float((threads / MEASURED_THREADS) ** THREADS_EXPONENT)


PROGRAM_SECONDS = 0.02
"""Start of the task of a program, and its result."""
RESULT_VERTEX_SECONDS = 1e-7
"""For each vertex: the result of a program."""


def program_seconds(cost: Cost, steps: int, entries: int, vertices: int, threads: int) -> float:
    """Seconds of a program in one block in the memory of a CPU, with supersteps that read all entries."""
    work = steps * (cost.entry * entries + cost.vertex * vertices)
    fixed = PROGRAM_SECONDS + RESULT_VERTEX_SECONDS * vertices
    return fixed + work * float((threads / MEASURED_THREADS) ** cost.threads)
