"""Batches of edges inserted into sorted rows and deleted again.

    python -m benchmarks dynamic --graph rmat16 --batches 1,1000,100000 --kinds uniform,rmat
    python -m benchmarks dynamic --graph rmat20 --gpu

A batch has random pairs that are no edges of the graph: *uniform* ones, or of the distribution of R-MAT. It is inserted
into the graph's rows, and deleted again. The rates are pairs of the batch a second, duplicates included: of the rows
alone, and with the support of every edge exact after each batch (*exact*). Small batches are repeated for a second.
*Moved* are the bytes of the touched rows and of the batch, read and written once, for each pair of an insertion;
*floor* is how many pairs a second could be inserted if these bytes moved as fast as a large copy. The number of edges
and the sum of supports must be those of before at the end of each measurement. With `--gpu` rows and batches lie in the
memory of a GPU.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.graphs import WrongAnswer, graph
from benchmarks.common.table import markdown, millions
from benchmarks.updates.update import simple_edges
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.device import synchronize
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.update.dynamic import DynamicRows
from edgemill.tasks.update.warm import warm_dynamic_rows

HEAD = (
    "graph",
    "edges, M",
    "pairs",
    "batch",
    "insert, M/s",
    "delete, M/s",
    "exact insert, M/s",
    "exact delete, M/s",
    "moved, B",
    "floor, M/s",
)
KEYS = ("graph", "pairs", "batch")
"""Columns that identify a row in the record."""
RECORDED = ("insert, M/s", "exact insert, M/s")
"""Columns whose figures are recorded."""
Ends = NDArray[np.int32]
COPIED = 1 << 28
"""Bytes that are copied to measure the bandwidth."""


def pairs(kind: str, count: int, vertices: int, seed: int) -> tuple[Ends, Ends]:
    """Random pairs of vertices; for rmat the number of vertices is rounded down to a power of two."""
    rng = np.random.default_rng(seed)
    if kind == "uniform":
        first, second = rng.integers(0, vertices, (2, count)).astype(np.int32)
        return first, second
    ends = np.zeros((2, count), np.int32)
    for _ in range(vertices.bit_length() - 1):
        drawn = rng.random(count)
        ends[0] = ends[0] << 1 | (drawn >= 0.76)
        ends[1] = ends[1] << 1 | ((drawn >= 0.57) & (drawn < 0.76) | (drawn >= 0.95))
    return ends[0], ends[1]


def copy_rate(space: MemorySpace) -> float:
    """Bytes a second that a large copy within the memory reads and writes."""
    array = space.place(np.ones(COPIED, np.uint8))
    other = np.empty_like(array)
    return 2 * COPIED / min(_timed(lambda: np.copyto(other, array), space) for _ in range(4))


def _timed(call: Callable[[], object], space: MemorySpace) -> float:
    start = time.perf_counter()
    call()
    if space is MemorySpace.DEVICE:
        synchronize()
    return time.perf_counter() - start


def filled(edges: Topology, supports: bool, space: MemorySpace) -> DynamicRows:
    """Rows that have the edges."""
    rows = DynamicRows(edges.vertices, supports, space)
    rows.insert(edges.low, edges.high)
    return rows


def rates(
    edges: Topology, batches: list[tuple[Ends, Ends]], seconds: float, supports: bool, space: MemorySpace
) -> tuple[float, float]:
    """Pairs a second that are inserted, and deleted. Raises WrongAnswer if the edges are not those of before."""
    rows = filled(edges, supports, space)
    sum_before = rows.supports_of(edges.low, edges.high).sum(dtype=np.int64) if supports else 0
    spent, done = [0.0, 0.0], 0
    while not done or sum(spent) < seconds:
        source, target = batches[done % len(batches)]
        spent[0] += _timed(lambda s=source, t=target: rows.insert(s, t), space)  # type: ignore[misc]
        spent[1] += _timed(lambda s=source, t=target: rows.delete(s, t), space)  # type: ignore[misc]
        done += 1
    sum_after = rows.supports_of(edges.low, edges.high).sum(dtype=np.int64) if supports else 0
    if rows.edges != edges.edges or sum_before != sum_after:
        raise WrongAnswer("the edges or supports differ from those before the batches")
    total = sum(len(batches[i % len(batches)][0]) for i in range(done))
    return total / spent[0], total / spent[1]


def moved_bytes(edges: Topology, batch: tuple[Ends, Ends]) -> float:
    """Bytes that an insertion reads and writes at least, for each pair: touched rows and new entries, 4 bytes each."""
    length = np.bincount(np.concatenate([edges.low, edges.high]), minlength=edges.vertices)
    touched = np.unique(np.concatenate(batch))
    return float(4 * (2 * length[touched].sum() + 4 * len(batch[0])) / max(len(batch[0]), 1))


def rows_of(
    name: str, edges: Topology, kinds: list[str], sizes: list[int], seconds: float, space: MemorySpace
) -> Iterator[list[str]]:
    """Measure batches of each kind and size."""
    rate, known = copy_rate(space), filled(edges, False, MemorySpace.HOST)
    placed = Topology(space.place(edges.low), space.place(edges.high), edges.vertices)
    for kind in kinds:
        for size in sizes:
            made = [pairs(kind, size, edges.vertices, seed) for seed in range(max(1, min(50, 10_000 // size)))]
            new = [
                (source[~old], target[~old]) for source, target, old in ((*one, known.contains(*one)) for one in made)
            ]
            new = [one for one in new if len(one[0])] or [pairs("uniform", 0, edges.vertices, 0)]
            given = [(space.place(source), space.place(target)) for source, target in new]
            found = [rates(placed, given, seconds, supports, space) for supports in (False, True)]
            moved = moved_bytes(edges, new[0])
            yield [
                name,
                millions(edges.edges),
                kind,
                str(size),
                *(f"{value / 1e6:.3g}" for pair in found for value in pair),
                f"{moved:.0f}",
                f"{rate / moved / 1e6:.3g}" if moved else "",
            ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graph", default="rmat16", help="the graph that takes the batches")
    parser.add_argument("--kinds", default="uniform,rmat", help="uniform, rmat")
    parser.add_argument("--batches", default="1,10,100,1000,10000,100000,1000000", help="sizes of batches")
    parser.add_argument("--gpu", action="store_true", help="rows in the memory of a GPU")
    parser.add_argument("--seconds", type=float, default=1.0, help="batches are repeated for at least this long")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    edges, sizes = simple_edges(graph(options.graph, options.cache)), [int(size) for size in options.batches.split(",")]
    space = MemorySpace.DEVICE if options.gpu else MemorySpace.HOST
    print(f"Batches of edges, {'one GPU' if options.gpu else f'{options.threads} threads'}:\n")
    with kernel_threads(options.threads):
        warm_dynamic_rows(space)
        rows = []
        for row in rows_of(options.graph, edges, options.kinds.split(","), sizes, options.seconds, space):
            print(" | ".join(row), flush=True)
            rows.append(row)
    print(markdown(HEAD, rows))
    return rows
