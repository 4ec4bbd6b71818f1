"""Vertex programs alone: kernel time on a graph in memory, in one block.

    python -m benchmarks programs --graphs rmat18,rmat20,cnr-2000 --threads 2 --repeats 3

The block is built before the time is taken, from the edges as ingest cleans and numbers them; the kernels are compiled.
The time of a program is that of all its supersteps, from the start of its state to its result. `bfs` and `sssp` run
from `--sources` vertices with edges, drawn with a seed; their figures are for one source. Weights of `sssp` are whole
numbers from 1 to 255, drawn by a hash of the edge. `pagerank` runs 20 supersteps, as its time is for a number of
supersteps. `betweenness` searches from 16 sources; its supersteps are batches. Times are medians of the repeats. Each
result is checked against the edges.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.graphs import Graph, WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds, span
from edgemill.kernels import row_numbers
from edgemill.kernels.graph import InRows
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.pipeline.events import Events
from edgemill.pipeline.stages.ingesting import number, read
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import AnyProgram, GraphBlock, ProgramOutcome, SourceProgram, delivery, run_program
from edgemill.tasks.programs.batches import run_batches
from edgemill.tasks.programs.batches.running import drawn_sources
from edgemill.tasks.programs.shipped.betweenness import Betweenness
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.warm import warm_program
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = "rmat18,rmat20,cnr-2000"
PATH_SOURCES = 16
"""Sources of betweenness."""
PROGRAMS: Mapping[str, Callable[[int], AnyProgram]] = {
    "bfs": BreadthFirst,
    "sssp": ShortestPaths,
    "pagerank": lambda _: PageRank(iterations=20),
    "components": lambda _: Components(),
    "labels": lambda _: LabelPropagation(),
    "coreness": lambda _: Coreness(),
    "clustering": lambda _: LocalClustering(),
    "betweenness": lambda _: Betweenness(PATH_SOURCES, normalized=False),
}
"""Name → the program, from a source."""
FROM_SOURCES = ("bfs", "sssp")
SEED = 1


@dataclass(frozen=True)
class ProgramTimes:
    """The runs of one program on one graph."""

    graph: str
    program: str
    threads: int
    block: GraphBlock
    samples: Sequence[float]
    """[repeats] seconds of a run, for programs with sources the mean over them."""
    outcomes: Sequence[ProgramOutcome]
    """[sources] of the last repeat; one for a program without sources."""

    @property
    def seconds(self) -> float:
        """Median."""
        return median(self.samples)


def block_of(path: Path) -> GraphBlock:
    """The graph in one block, with undirected edges, by the stages of a run with one bucket."""
    source, engine, events, space = open_source(str(path)), SequentialEngine(), Events(), MemorySpace.HOST
    blocks, _ = read(engine, events, source, plan_blocks(source, 2_000_000), "drop", space)
    buckets = number(engine, events, source, blocks, 1, space)
    (edges,) = buckets.edges
    home = RangePartitioner()
    sent = delivery.send_entries(edges, home, "both", mirrored=True)
    return delivery.collect_block(0, int(buckets.starts[-1]), home, False, "both", False, sent.parts)


def weighted(block: GraphBlock) -> GraphBlock:
    """The block with a weight from 1 to 255 on each edge, equal in both directions."""
    source, target = block.rows.source.astype(np.uint64), row_numbers(block.rows.offsets).astype(np.uint64)
    mixed = (np.minimum(source, target) << np.uint64(32) | np.maximum(source, target)) * np.uint64(0x9E3779B97F4A7C15)
    weight = (1 + (mixed >> np.uint64(40)) % np.uint64(255)).astype(np.float64)
    return replace(block, rows=InRows(block.rows.offsets, block.rows.source, weight))


def sources_of(block: GraphBlock, count: int) -> list[int]:
    """Distinct vertices with edges, by a seeded draw."""
    there = np.flatnonzero(np.diff(block.rows.offsets))
    chosen: list[int] = np.random.default_rng(SEED).permutation(there)[:count].tolist()
    return chosen


def measure(
    name: str, graph: str, block: GraphBlock, threads: int, repeats: int, sources: Sequence[int]
) -> ProgramTimes:
    """Time a program. Raises WrongAnswer if the edges contradict the result."""
    programs = [PROGRAMS[name](source) for source in (sources if name in FROM_SOURCES else [0])]
    if name != "sssp":
        warm_program(programs[0], at_once=True)
    block = weighted(block) if name == "sssp" else block
    own = replace(block, view=programs[0].view)
    home, samples, outcomes = RangePartitioner(), [], list[ProgramOutcome]()
    with kernel_threads(threads):
        if name == "sssp":  # the path of warm_program has no weights
            _run(programs[0], own, home)
        for _ in range(repeats):
            gc.collect()
            start = time.perf_counter()
            outcomes = [_run(program, own, home) for program in programs]
            samples.append((time.perf_counter() - start) / len(programs))
    for outcome in outcomes:
        check(name, graph, own, outcome)
    return ProgramTimes(graph, name, threads, block, samples, outcomes)


def _run(program: AnyProgram, block: GraphBlock, home: RangePartitioner) -> ProgramOutcome:
    (carrier,) = MemoryCarrier.open(1)
    run = run_batches if isinstance(program, SourceProgram) else run_program
    return run(program, block, home, carrier)  # type: ignore[arg-type]


def check(name: str, graph: str, block: GraphBlock, outcome: ProgramOutcome) -> None:
    """Raises WrongAnswer if the edges contradict the result of a program."""
    if not _CHECKS[name](block, row_numbers(block.rows.offsets), outcome.state):
        raise WrongAnswer(f"{graph}: {name} contradicts the edges")


def _is_bfs(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.int64]]) -> bool:
    level = state["level"]
    reached = level >= 0
    step = np.abs(level[target] - level[block.rows.source])
    parents = level[state["parent"][reached]]
    return bool(np.all(step <= 1) and np.all((parents == level[reached] - 1) | (level[reached] == 0)))


def _is_sssp(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.float64]]) -> bool:
    distance, source, weight = state["distance"], block.rows.source, block.rows.weights
    nearest = np.full(len(distance), np.inf)
    np.minimum.at(nearest, target, distance[source] + weight)
    first = distance == 0
    return bool(np.count_nonzero(first) == 1 and np.array_equal(nearest[~first], distance[~first]))


def _is_pagerank(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.float64]]) -> bool:
    degree = np.diff(block.rows.offsets)
    rank = state["rank"]
    received = np.bincount(target, rank[block.rows.source] / degree[block.rows.source], len(rank))
    again = 0.15 / len(rank) + 0.85 * (received + rank[degree == 0].sum() / len(rank))
    return bool(abs(rank.sum() - 1) < 1e-9 and np.abs(again - rank).sum() < 2 * 0.85**20)


def _is_components(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.int64]]) -> bool:
    component = state["component"]
    if np.any(component > np.arange(len(component))):
        return False
    named = component[component] == component
    joined = component[target] == component[block.rows.source]
    return bool(named.all() and joined.all())


def _is_labels(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.int64]]) -> bool:
    label = state["label"]
    return bool(np.all((label >= 0) & (label < len(label))))


def _is_coreness(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.int32]]) -> bool:
    """Every vertex has as many neighbours of at least its coreness, and not more of a higher one."""
    core = state["core"]
    above = np.bincount(target[core[block.rows.source] >= core[target]], minlength=len(core))
    higher = np.bincount(target[core[block.rows.source] > core[target]], minlength=len(core))
    return bool(np.all(above >= core) and np.all(higher <= core))


def _is_betweenness(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.float64]]) -> bool:
    """A shortest path of d edges has d - 1 vertices between its ends, so these add up to the sum of betweenness."""
    total, count = 0, len(block.number)
    for source in drawn_sources(count, PATH_SOURCES, 0).tolist():
        level = _run(BreadthFirst(source), block, RangePartitioner()).state["level"]
        total += int(np.maximum(level - 1, 0).sum())
    known = total * count / PATH_SOURCES / 2
    return bool(abs(state["betweenness"].sum() - known) <= 1e-9 * known)


def _is_clustering(block: GraphBlock, target: NDArray[np.int32], state: Mapping[str, NDArray[np.float64]]) -> bool:
    return bool(np.all((state["clustering"] >= 0) & (state["clustering"] <= 1)) and state["links"].sum() % 6 == 0)


_CHECKS: Mapping[str, Callable[..., bool]] = {
    "bfs": _is_bfs,
    "sssp": _is_sssp,
    "pagerank": _is_pagerank,
    "components": _is_components,
    "labels": _is_labels,
    "coreness": _is_coreness,
    "clustering": _is_clustering,
    "betweenness": _is_betweenness,
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="names, with commas between")
    parser.add_argument("--sources", type=int, default=4, help="vertices that bfs and sssp start from (4)")
    parser.add_argument("--repeats", type=int, default=3)


HEAD = (
    "graph",
    "program",
    "threads",
    "vertices, M",
    "entries, M",
    "supersteps",
    "entries read, M",
    "time, s",
    "from-to, s",
    "entries, M/s",
)
KEYS = ("graph", "program", "threads")
"""Columns that identify a row in the record."""
RECORDED = ("time, s",)
"""Columns whose figures are recorded."""


def row(times: ProgramTimes) -> list[str]:
    """A line of the table. Supersteps and entries are means over the sources."""
    runs = len(times.outcomes)
    return [
        times.graph,
        times.program,
        str(times.threads),
        millions(len(times.block.number)),
        millions(len(times.block)),
        f"{sum(one.steps for one in times.outcomes) / runs:.3g}",
        millions(sum(one.entries for one in times.outcomes) / runs),
        seconds(times.seconds),
        span(times.samples),
        millions(len(times.block) / times.seconds),
    ]


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    names = options.programs.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise LookupError(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    rows = []
    for one in [graph(name, options.cache) for name in options.graphs.split(",")]:
        rows += _rows(one, names, options)
    print(f"Programs, {options.threads} threads, median of {options.repeats}:\n")
    print(markdown(HEAD, rows))
    return rows


def _rows(graph: Graph, names: Sequence[str], options: argparse.Namespace) -> list[list[str]]:
    block = block_of(graph.path)
    sources = sources_of(block, options.sources)
    return [row(measure(name, graph.name, block, options.threads, options.repeats, sources)) for name in names]
