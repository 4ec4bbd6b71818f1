"""The duration of a run for λ, predicted from edges and triangles.

The constants are fitted to whole runs of seven graphs, from 0.2 to 16 million edges, on two cores (docs/benchmarks.md,
"Whole runs"): within 30 %. More threads are worth less than their number, as peeling is bound by memory: fitted to
R-MAT 20 and 22 on 16 cores. Other processors differ by a factor.
"""

from __future__ import annotations

START_SECONDS = 1.8
"""Start and end of Python and Dask, and loading of kernels."""
EDGE_SECONDS = 4e-7
"""For each edge: reading, numbering, orienting, publishing."""
TRIANGLE_SECONDS = 3e-8
"""For each triangle: counting and peeling."""
MEASURED_THREADS = 2
THREADS_EXPONENT = -0.2


def predicted_seconds(edges: float, triangles: float, threads: int) -> float:
    """Seconds of the command `edgemill run` for λ alone on CPUs with this number of threads in all workers."""
    work = EDGE_SECONDS * edges + TRIANGLE_SECONDS * triangles
    return START_SECONDS + work * float((threads / MEASURED_THREADS) ** THREADS_EXPONENT)
