"""Programs that search from many sources: the seconds predicted by their first batches, over the actual ones.

    python -m benchmarks predictions --graphs ca-GrQc,facebook_combined --programs distances,betweenness --threads 2

Each graph is in one block, with undirected edges; the kernels are compiled. `distances` is breadth-first search from
all vertices, `pairs` the same with the table of all pairs of vertices, and `betweenness` searches from all vertices,
too, unless `--sources` limits their number. The prediction is the one that a run tells after its first batches (see
`Forecast`). Its ratio to the actual time is given for the wall clock, and for the time of all processors, predicted in
the same way from the same batches, which other work on the machine changes less. Each figure is the median of
`--repeats` runs. A run of few batches is over before it predicts.
"""

from __future__ import annotations

import argparse
import gc
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from statistics import median

from benchmarks.common.graphs import WrongAnswer, graph
from benchmarks.common.table import markdown, millions, seconds
from benchmarks.programs import block_of
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, SourceProgram
from edgemill.tasks.programs.batches import run_batches
from edgemill.tasks.programs.batches.running import Forecast
from edgemill.tasks.programs.shipped.betweenness import Betweenness
from edgemill.tasks.programs.shipped.distances import Distances
from edgemill.tasks.programs.warm import warm_program
from edgemill.tasks.shards import MemoryCarrier

GRAPHS = "email-Eu-core,ca-GrQc,facebook_combined,wiki-Vote,p2p-Gnutella04"
PROGRAMS: Mapping[str, Callable[[int | None], SourceProgram]] = {
    "distances": lambda sources: Distances(sources),
    "pairs": lambda sources: Distances(sources, table=True),
    "betweenness": lambda sources: Betweenness(sources),
}
"""Name → the program, from a number of sources; None for all vertices."""


@dataclass
class Told:
    """What a run tells after each batch, with the time of all processors since its start."""

    start: float = field(default_factory=time.process_time)
    seconds: list[float] = field(default_factory=list)
    """Seconds of the wall clock from the start to the end of each batch."""
    work: list[float] = field(default_factory=list)
    """Those of all processors."""
    predicted: list[float | None] = field(default_factory=list)
    """What the run predicts, in seconds of the wall clock."""

    def __call__(self, done: int, batches: int, spent: float, predicted: float | None) -> None:
        """See `edgemill.tasks.programs.batches.Progress`."""
        self.seconds.append(spent)
        self.work.append(time.process_time() - self.start)
        self.predicted.append(predicted)

    def work_predicted(self, sources: int, width: int) -> float | None:
        """What the run would predict from the time of all processors."""
        forecast = Forecast(sources, width)
        for spent in self.work:
            forecast.add(spent)
        return forecast.seconds


HEAD = (
    "graph",
    "program",
    "threads",
    "vertices, M",
    "entries, M",
    "batches",
    "predicted, s",
    "actual, s",
    "predicted / actual",
    "of processors' time",
)
KEYS = ("graph", "program", "threads")
"""Columns that identify a row in the record."""
RECORDED = ("actual, s",)
"""Columns whose figures are recorded."""


def measure(name: str, graph: str, block: GraphBlock, threads: int, sources: int | None, repeats: int) -> list[str]:
    """Run a program to its end, `repeats` times; a line of the table. Raises WrongAnswer if a run tells something else
    than it returns.
    """
    program = PROGRAMS[name](sources)
    warm_program(program)
    own = replace(block, view=program.view)
    found: list[tuple[float, float, float, float]] = []
    actual: list[float] = []
    for _ in range(repeats):
        (carrier,) = MemoryCarrier.open(1)
        gc.collect()
        with kernel_threads(threads):
            told = Told()
            outcome = run_batches(program, own, RangePartitioner(), carrier, progress=told)
        searched, batches = outcome.facts["sources"], outcome.facts["batches"]
        assert isinstance(searched, int) and isinstance(batches, int)
        if len(told.seconds) != batches:
            raise WrongAnswer(f"{graph}: {name} told {len(told.seconds)} batches, of which {batches} were run")
        actual.append(told.seconds[-1])
        predicted, work = told.predicted[-1], told.work_predicted(searched, program.batch)
        if predicted is not None and work is not None:
            found.append((predicted, actual[-1], predicted / actual[-1], work / told.work[-1]))
    line = [graph, name, str(threads), millions(len(block.number)), millions(len(block)), str(batches)]
    if not found:  # few batches
        return [*line, "", seconds(median(actual)), "", ""]
    figures = [median(column) for column in zip(*found, strict=True)]
    return [*line, seconds(figures[0]), seconds(figures[1]), *(f"{ratio:.3g}" for ratio in figures[2:])]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--graphs", default=GRAPHS, help="names, with commas between")
    parser.add_argument("--programs", default=",".join(PROGRAMS), help="names, with commas between")
    parser.add_argument("--repeats", type=int, default=3, help="runs of each program (3)")
    parser.add_argument("--sources", type=int, help="vertices to search from (all)")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    names = options.programs.split(",")
    if unknown := [name for name in names if name not in PROGRAMS]:
        raise LookupError(f"no program {', '.join(unknown)}; there are {', '.join(PROGRAMS)}")
    rows: list[list[str]] = []
    for one in [graph(name, options.cache) for name in options.graphs.split(",")]:
        block = block_of(one.path)
        for name in names:
            rows.append(measure(name, one.name, block, options.threads, options.sources, options.repeats))
            print(markdown(HEAD, rows[-1:]).rsplit("\n", 1)[-1], flush=True)
    print()
    print(markdown(HEAD, rows))
    return rows
