"""Communities by the Leiden algorithm: seconds and modularity, compared with igraph in the same process.

    python -m benchmarks communities --graphs ego-Twitter_combined,rmat18 --threads 1 --repeats 3

The graph is in memory. `edgemill` is the program `leiden` on it, and `igraph` its `community_leiden`, both with
`--iterations`. Seconds are medians; modularity is that of edgemill, and the best of igraph's, which draws numbers.
igraph has one thread. Every community must be connected.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks.common.graphs import WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.programs import block_of
from edgemill.kernels import row_numbers
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, ProgramOutcome, run_blocks
from edgemill.tasks.programs.shipped.leiden import Leiden
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = (
    "facebook_combined,lastfm-asia,ca-CondMat,ca-AstroPh,email-Enron,loc-brightkite,musae-github,soc-Slashdot0902,"
    "ego-Twitter_combined,cnr-2000,rmat18"
)
SEED = 1


@dataclass(frozen=True)
class Found:
    """One way to find communities."""

    seconds: float
    modularity: float
    communities: int


def of_edgemill(block: GraphBlock, iterations: int, threads: int, repeats: int) -> tuple[Found, NDArray[np.int64]]:
    """The program, and the community of each vertex."""

    def run() -> ProgramOutcome:
        carriers = MemoryCarrier.open(1)
        with kernel_threads(threads):
            (found,) = run_blocks(Leiden(iterations=iterations), [block], RangePartitioner(), carriers, threads=threads)
        return found

    outcome, times = run(), []
    for _ in range(repeats):
        start = time.perf_counter()
        outcome = run()
        times.append(time.perf_counter() - start)
    facts = outcome.facts
    return Found(statistics.median(times), facts["quality"], facts["communities"]), outcome.state["community"]


def measure(name: str, block: GraphBlock, iterations: int, threads: int, repeats: int) -> list[str]:
    """A line of the table. Raises WrongAnswer for communities that are not connected, or another modularity."""
    import igraph  # a peer, which is installed for tests

    target, source = row_numbers(block.rows.offsets), block.rows.source
    once = source < target
    theirs = igraph.Graph(n=len(block.number), edges=np.stack([source[once], target[once]], 1))
    ours, community = of_edgemill(block, iterations, threads, repeats)
    _, group = np.unique(community, return_inverse=True)
    inside = igraph.Graph(n=len(group), edges=np.stack([source, target], 1)[once & (group[source] == group[target])])
    if len(inside.connected_components()) != ours.communities:
        raise WrongAnswer(f"{name}: communities are not connected")
    if abs(theirs.modularity(group.tolist()) - ours.modularity) > 1e-9:
        raise WrongAnswer(f"{name}: the modularity is {theirs.modularity(group.tolist())}, not {ours.modularity}")
    random.seed(SEED)
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        made = theirs.community_leiden("modularity", n_iterations=iterations)
        found.append(Found(time.perf_counter() - start, made.modularity, len(made)))
    best = max(own.modularity for own in found)
    their_seconds = statistics.median(own.seconds for own in found)
    return [
        name,
        millions(int(np.count_nonzero(once))),
        seconds(ours.seconds),
        seconds(their_seconds),
        f"{ours.seconds / their_seconds:.2f}",
        f"{ours.modularity:.4f}",
        f"{best:.4f}",
        f"{ours.modularity / best:.4f}",
        str(ours.communities),
    ]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--iterations", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=3)


HEAD = (
    "graph",
    "edges, M",
    "edgemill, s",
    "igraph, s",
    "ratio",
    "modularity",
    "igraph's",
    "ratio of it",
    "communities",
)
KEYS = ("graph",)
RECORDED = ("edgemill, s", "igraph, s", "modularity")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    rows = []
    for name in options.graphs.split(","):
        block = block_of(graph(name, options.cache).path)
        rows.append(measure(name, block, options.iterations, options.threads, options.repeats))
    print(markdown(HEAD, rows))
    return rows
