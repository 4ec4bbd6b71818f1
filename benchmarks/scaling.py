"""The model of docs/scaling.md: constants fitted to what was measured and simulated, and what they say of 100 G edges.

    python -m benchmarks scaling

Reads `measured.csv` and `simulated.csv` in docs/scaling: the first holds what was measured, each line with the page of
docs/ that says so or the command; the second is what `simulate_partitions --csv` wrote. Prints every table of
docs/scaling.md, which a test compares with it. Sums are fitted with the least squared relative errors and constants
that are not negative, curves with the least squared errors of logarithms; *off* is the error of what a fit says of a
point, *worst* the largest of those that it was fitted to.
"""

from __future__ import annotations

import argparse
import csv
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

from benchmarks import ROOT
from benchmarks.simulate_partitions import Simulated, read_csv
from benchmarks.table import markdown
from benchmarks.traffic import STAGES, traffic
from edgemill.kernels.graph import MAX_LOCAL_EDGES

FOLDER = ROOT / "docs" / "scaling"
INGEST = ("read", "number", "partition", "publish")
EDGE_BYTES = 115
"""Memory of a local edge on a GPU, measured from ingest to result (docs/performance.md)."""
ROW_BYTES = 60
"""Memory of a row on a GPU that reads and numbers it."""
FILL = 0.9
"""Share of a GPU's memory that may be taken."""
DRIVER_BYTES = 16e9
"""Memory of a driver."""
BLOCK_ROWS = 2_000_000
"""The default of ingest.rows_per_block."""


@dataclass(frozen=True)
class Point:
    """Something measured; numbers that do not matter to it are 0."""

    what: str
    graph: str
    method: str
    source: str
    edges: float
    triangles: float
    rows: float
    rounds: float
    devices: float
    partitions: float
    exchanges: float
    tasks: float
    held: float
    """Edges that the largest partition holds, over all edges."""
    one_device: float
    """Seconds of the same on one device."""
    seconds: float

    def __str__(self) -> str:
        return f"{self.graph}{f', {self.partitions:.0f} {self.method}'.rstrip() if self.partitions > 1 else ''}"


def read_points(path: Path) -> list[Point]:
    """The lines of a file as measured.csv."""
    text = {"what", "graph", "method", "source"}
    with path.open(newline="") as file:
        return [
            Point(**{name: value if name in text else float(value or 0) for name, value in line.items()})  # type: ignore[arg-type]
            for line in csv.DictReader(file)
        ]


@dataclass(frozen=True)
class Fitted:
    """Constants, and how well they do."""

    name: str
    terms: Mapping[str, float]
    """What a constant is for → the constant."""
    points: Sequence[tuple[str, float, float]]
    """What was fitted to: its name, measured, and as the fit has it."""

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return max(abs(said / value - 1) for _, value, said in self.points)


@dataclass(frozen=True)
class Span:
    """Seconds, at best and at worst."""

    least: float
    most: float

    def __add__(self, other: Span) -> Span:
        return Span(self.least + other.least, self.most + other.most)

    def __str__(self) -> str:
        return f"{_round(self.least)} - {_round(self.most)}"


def _round(value: float) -> str:
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


class Fit(Fitted):
    """A sum of terms, each with its constant."""

    def __call__(self, *amounts: float) -> float:
        """What it says of other amounts."""
        return sum(constant * amount for constant, amount in zip(self.terms.values(), amounts, strict=True))

    def span(self, *amounts: float) -> Span:
        """The same, with the errors of the points in both directions."""
        errors = [value / said for _, value, said in self.points]
        return Span(self(*amounts) * min(errors), self(*amounts) * max(errors))


def fit_sum(name: str, terms: Sequence[str], points: Sequence[tuple[str, float, Sequence[float]]]) -> Fit:
    """Constants ≥ 0 with the least squared relative error; a point is its name, its value and an amount per term."""
    amounts = np.array([own for _, _, own in points], float)
    values = np.array([value for _, value, _ in points], float)
    constants, _ = nnls(amounts / values[:, None], np.ones(len(values)))
    said = amounts @ constants
    names = [own for own, _, _ in points]
    return Fit(name, dict(zip(terms, constants.tolist(), strict=True)), list(zip(names, values, said, strict=True)))


class Curve(Fitted):
    """The logarithm of a quantity of R-MAT, as a sum of terms in the logarithms of partitions and edges."""

    def __call__(self, partitions: float, edges: float) -> float:
        """What it says of other partitions and edges."""
        logs = _logs(self.terms, partitions, edges)
        return float(np.exp(sum(constant * log for constant, log in zip(self.terms.values(), logs, strict=True))))


LOGS: Mapping[str, Callable[[float, float], float]] = {
    "1": lambda partitions, edges: 1.0,
    "ln P": lambda partitions, edges: np.log(partitions),
    "ln² P": lambda partitions, edges: np.log(partitions) ** 2,
    "ln E": lambda partitions, edges: np.log(edges),
    "ln P ln E": lambda partitions, edges: np.log(partitions) * np.log(edges),
}
"""What a curve may have."""


def _logs(terms: Iterable[str], partitions: float, edges: float) -> list[float]:
    return [LOGS[term](partitions, edges) for term in terms]


def fit_curve(name: str, terms: Sequence[str], points: Sequence[tuple[str, float, tuple[float, float]]]) -> Curve:
    """Constants with the least squared error of logarithms; a point is its name, value, partitions and edges."""
    logs = np.array([_logs(terms, *own) for _, _, own in points], float)
    values = np.array([value for _, value, _ in points], float)
    constants, *_ = np.linalg.lstsq(logs, np.log(values), rcond=None)
    said = np.exp(logs @ constants).tolist()
    names = [own for own, _, _ in points]
    return Curve(name, dict(zip(terms, constants.tolist(), strict=True)), list(zip(names, values, said, strict=True)))


@dataclass(frozen=True)
class Model:
    """All that is fitted."""

    support: Fit
    """Seconds of supports on one GPU: by triangles."""
    peel: Fit
    """Seconds of peeling on one GPU: by triangles, and rounds."""
    in_step: Fit
    """Seconds of peeling in step: by those of one GPU times the share that each holds, and rounds."""
    band_cpu: Fit
    """Seconds of banding on two cores: by exchanges, and triangles looked at."""
    band_gpu: Fit
    """Seconds of banding on GPUs: by exchanges."""
    ingest: Mapping[tuple[str, int], Fit]
    """(Stage, GPUs of the machine) → seconds by rows."""
    scheduler: Fit
    """Seconds of the scheduler: by tasks."""
    copies: Curve
    """Copies of edges, R-MAT by hash."""
    held: Curve
    """Copies of edges that have triangles, R-MAT by hash."""
    most: Curve
    """Edges of the largest partition over all edges, R-MAT by hash."""
    lists: Curve
    """List entries an edge, R-MAT by hash."""
    ids: Curve
    """Ids of banding an edge, R-MAT by hash."""
    slowest: Curve
    """Evaluations on the longest path of banding, R-MAT by hash, an edge."""
    triangles: Curve
    """Triangles an edge, R-MAT."""
    support_max: Curve
    """Largest support, R-MAT."""
    vertex_most: Curve
    """Share of the edges that is held for one vertex, R-MAT."""

    @property
    def sums(self) -> list[Fit]:
        """All that have constants for amounts."""
        own = [value for value in vars(self).values() if isinstance(value, Fit)]
        return [*own, *self.ingest.values()]

    @property
    def curves(self) -> list[Curve]:
        """All others."""
        return [value for value in vars(self).values() if isinstance(value, Curve)]


def fit_model(points: Sequence[Point], simulated: Sequence[Simulated]) -> Model:
    """Fit everything."""
    by_what: dict[str, list[Point]] = {}
    for point in points:
        by_what.setdefault(point.what, []).append(point)
    counted = {(one.graph, one.method, one.partitions): one for one in simulated}
    rmat = [one for one in simulated if one.graph.startswith("rmat") and one.partitions >= 4 and one.method == "hash"]
    banded = [one for one in rmat if one.exchanges]
    each = list({one.graph: one for one in rmat}.values())

    def looked_at(point: Point) -> float:
        one = counted[point.graph, point.method, int(point.partitions)]
        return one.evaluations / one.edges * point.triangles

    def sums(name: str, what: str, terms: Sequence[str], amounts: Callable[[Point], Sequence[float]]) -> Fit:
        return fit_sum(name, terms, [(str(point), point.seconds, amounts(point)) for point in by_what[what]])

    def curve(name: str, value: Callable[[Simulated], float], among: Sequence[Simulated]) -> Curve:
        own = [(f"{one.graph}, {one.partitions}", value(one), (one.partitions, one.edges)) for one in among]
        return fit_curve(f"{name}, R-MAT by hash", list(LOGS), own)

    def growth(name: str, own: Sequence[tuple[str, float, float]]) -> Curve:
        points = [(of, value, (1.0, edges)) for of, value, edges in own]
        return fit_curve(f"{name}, R-MAT", ["1", "ln E"], points)

    return Model(
        sums("supports, one GPU", "support", ["triangle", "stage"], lambda p: (p.triangles, 1)),
        sums("peeling, one GPU", "peel", ["triangle", "round"], lambda p: (p.triangles, p.rounds)),
        sums(
            "peeling in step",
            "in step",
            ["s of one GPU × share held", "round"],
            lambda p: (p.one_device * p.held, p.rounds),
        ),
        sums(
            "banding, two cores",
            "band on CPU",
            ["exchange", "triangle looked at"],
            lambda p: (p.exchanges, looked_at(p)),
        ),
        sums("banding, GPUs", "band on GPUs", ["exchange"], lambda p: (p.exchanges,)),
        {
            (stage, gpus): fit_sum(
                f"{stage}, a machine of {gpus} GPU{'s' * (gpus > 1)}",
                ["row", "stage"],
                [(str(p), p.seconds, (p.rows, 1)) for p in by_what[stage] if p.devices == gpus],
            )
            for stage in INGEST
            for gpus in (1, 4)
        },
        sums("scheduler", "scheduler", ["task", "exchange"], lambda p: (p.tasks, 1)),
        curve("copies of edges", lambda one: one.replication, rmat),
        curve("copies of local edges", lambda one: one.held, rmat),
        curve("share of the largest partition", lambda one: one.held_most / one.edges, rmat),
        curve("list entries an edge", lambda one: one.list_entries / one.edges, rmat),
        curve("ids of banding an edge", lambda one: one.ids / one.edges, banded),
        curve("evaluations of the slowest an edge", lambda one: one.evaluations_slowest / one.edges, banded),
        growth("triangles an edge", [(p.graph, p.triangles / p.edges, p.edges) for p in by_what["peel"]]),
        growth("largest support", [(one.graph, one.support_max, one.edges) for one in each]),
        growth("share held for one vertex", [(one.graph, one.vertex_most / one.edges, one.edges) for one in each]),
    )


@dataclass(frozen=True)
class Machines:
    """What computes."""

    nodes: int = 32
    gpus: int = 8
    """Of each node."""
    memory: float = 141e9
    """Of each GPU."""
    fast: float = 50e9
    """Bytes a second of each GPU to other nodes, at best: 400 Gb/s."""
    slow: float = 1.4 * 2**30
    """As measured by TCP between workers."""
    quick_tasks: float = 5000
    """Tasks a second of the scheduler, at best."""

    @property
    def workers(self) -> int:
        """GPUs in all, with a worker and a partition each."""
        return self.nodes * self.gpus


@dataclass(frozen=True)
class Job:
    """A graph in its partitions, as far as the model needs it."""

    name: str
    edges: float
    triangles: float
    held: float
    """Copies of an edge over all partitions, edges without triangles left out."""
    most: float
    """Edges of the largest partition over the mean."""
    lists: float
    """List entries an edge."""
    ids: float
    """Ids of banding an edge."""
    exchanges: float
    parts: float
    """Share of all pairs of partitions that have something to tell in an exchange."""
    slowest: float
    """Evaluations on the longest path through the exchanges, over edges."""
    moved: Mapping[str, float]
    """Stage → bytes an edge, with 64-bit numbers."""

    @property
    def local(self) -> float:
        """Copies, all together."""
        return self.held * self.edges


def as_simulated(one: Simulated, pairs: Simulated, edges: float, triangles: float, partitions: int) -> Job:
    """A graph of so many edges whose partitions hold and tell what the simulated ones do.

    Who tells whom, and how often, is as in `pairs`.
    """
    moved = dict.fromkeys(STAGES.values(), 0.0)
    for exchange, size in traffic(replace(one, vertices=2**31)).items():
        moved[STAGES[exchange]] += size / one.edges if exchange != "peel" else 0
    return Job(
        f"{one.graph}, {one.method}, as in {one.partitions}",
        edges,
        triangles,
        one.held,
        one.held_most * one.partitions / (one.local + one.ghosts),
        one.list_entries / one.edges,
        one.ids / one.edges,
        pairs.exchanges,
        pairs.parts / (pairs.exchanges * pairs.partitions * (pairs.partitions - 1)),
        one.evaluations_slowest / one.edges * one.partitions / partitions,
        moved,
    )


def extrapolated(model: Model, like: Job, partitions: int) -> Job:
    """R-MAT by hash as the curves have it at that size; what has none is as in `like`."""
    at = partitions, like.edges
    held, lists, ids = model.held(*at), model.lists(*at), model.ids(*at)
    moved = dict(like.moved)
    moved["triangulate"] *= lists / like.lists
    moved["bound"] *= ids / like.ids
    return replace(
        like,
        name="R-MAT, hash, extrapolated",
        held=held,
        most=max(1.0, model.most(*at) * partitions / held),
        lists=lists,
        ids=ids,
        slowest=max(model.slowest(*at), held / partitions),
        moved=moved,
    )


def jobs(model: Model, simulated: Sequence[Simulated], edges: float, partitions: int) -> list[Job]:
    """What graphs of so many edges could be like: R-MAT, and real ones whose ids have locality.

    A graph that is simulated in 256 partitions has tiny ones, and the same graph in 4 has some that are nearer to those
    of a large graph, of which there are more.
    """
    triangles = model.triangles(1, edges) * edges
    banded = [one for one in simulated if one.exchanges]
    rmat = [one for one in banded if one.graph.startswith("rmat") and one.method == "hash"]
    largest = max((one for one in rmat if one.partitions == partitions), key=lambda one: one.edges)
    found = [as_simulated(largest, largest, edges, triangles, partitions)]
    found.append(extrapolated(model, found[0], partitions))
    real = {
        (one.graph, one.partitions): one
        for one in banded
        if not one.graph.startswith("rmat") and one.method == "range" and one.partitions in (4, partitions)
    }
    for (graph, _), one in sorted(real.items(), key=lambda item: -item[1].held):
        if (graph, partitions) in real:
            found.append(as_simulated(one, real[graph, partitions], edges, triangles, partitions))
    return found


def stage_times(
    model: Model, machines: Machines, job: Job, blocks: float, partitions: int
) -> dict[str, dict[str, Span]]:
    """Stage → part of it (work, network, scheduler) → seconds, rows being edges of their own.

    Work of ingest and publishing: of one node with its share of the rows, as a machine of one GPU and as one of four
    did it, and the errors of the fits. Of triangulation: every triangle once, at worst again for each copy. Of
    bounding: what falls on the longest path, as peeling takes it, at worst twice that. Network: at best at the full
    rate of every GPU, at worst by TCP as measured. Scheduler: at best 5,000 tasks a second, at worst as measured.
    Latency: of each exchange, as measured.
    """
    rows = job.edges / machines.nodes

    def work(stage: str) -> Span:
        own = [model.ingest[stage, gpus].span(rows, 1) for gpus in (1, 4)]
        return Span(min(span.least for span in own), max(span.most for span in own))

    def network(moved: float) -> Span:
        away = moved * job.edges * (1 - 1 / machines.nodes) / machines.workers
        return Span(away / machines.fast, away / machines.slow)

    def scheduler(count: float) -> Span:
        return Span(count / machines.quick_tasks, max(1 / machines.quick_tasks, model.scheduler.terms["task"]) * count)

    squares = partitions**2
    supports = model.support(job.triangles, 0) * job.most / machines.workers
    falls = model.peel(job.triangles, 0) * job.slowest
    return {
        "read": {"work": work("read"), "scheduler": scheduler(blocks)},
        "number": {
            "work": work("number"),
            "network": network(job.moved["number"]),
            "scheduler": scheduler(3 * blocks * partitions),
        },
        "partition": {
            "work": work("partition"),
            "network": network(job.moved["partition"]),
            "scheduler": scheduler(4 * squares),
        },
        "triangulate": {
            "work": Span(supports, supports * max(1.0, job.held)),
            "network": network(job.moved["triangulate"]),
            "scheduler": scheduler(2 * squares),
        },
        "bound": {
            "work": Span(falls, 2 * falls),
            "network": network(job.moved["bound"]),
            "scheduler": scheduler(job.exchanges * (job.parts * squares + 2 * partitions)),
            "latency": model.band_gpu.span(job.exchanges),
        },
        "publish": {
            "work": work("publish"),
            "network": network(job.moved["publish"]),
            "scheduler": scheduler(3 * squares),
        },
    }


@dataclass(frozen=True)
class Limit:
    """Something that breaks, and at how many edges on these machines."""

    term: str
    where: str
    breaks: Callable[[Job], float]


def limits(model: Model, machines: Machines) -> list[Limit]:
    """What may break, as edges of a graph like the job at which it does, with a partition for each GPU."""
    partitions = machines.workers
    room = FILL * machines.memory * machines.workers
    task_rate = 1 / model.scheduler.terms["task"]
    hour = 3600 * task_rate
    return [
        Limit(
            "memory of the largest partition",
            f"{EDGE_BYTES} B a local edge, {machines.memory / 1e9:.0f} GB",
            lambda job: room / (EDGE_BYTES * job.held * job.most),
        ),
        Limit(
            "memory of the lists of triangulation",
            "12 B an entry, sent and received at once",
            lambda job: room / (24 * job.lists),
        ),
        Limit(
            "edges of a subgraph",
            "kernels/graph.py MAX_LOCAL_EDGES, int32",
            lambda job: MAX_LOCAL_EDGES * partitions / (job.held * job.most),
        ),
        Limit(
            "an hour of the scheduler in `number`, 2 M rows a block",
            f"{task_rate:,.0f} tasks/s",
            lambda job: hour / (3 * partitions) * BLOCK_ROWS,
        ),
        Limit(
            "histograms of supports at the driver",
            f"pipeline/schedule.py, 8 B × largest support × partitions, {DRIVER_BYTES / 1e9:.0f} GB",
            lambda job: _edges_with_support(model, DRIVER_BYTES / 8 / partitions),
        ),
        Limit("memory while ingesting", f"{ROW_BYTES} B a row", lambda job: room / ROW_BYTES),
        Limit(
            "rows of a bucket, edges that a partition owns",
            "tasks/ingest.py, int32",
            lambda job: 2**31 * partitions,
        ),
    ]


def _edges_with_support(model: Model, support: float) -> float:
    """Edges of an R-MAT graph whose largest support is that."""
    start, slope = model.support_max.terms.values()
    return float(np.exp((np.log(support) - start) / slope))


def _constants_table(model: Model) -> str:
    rows = [
        [
            own.name,
            ", ".join(f"{value:.3g} / {term}" for term, value in own.terms.items()),
            str(len(own.points)),
            _off(own),
        ]
        for own in model.sums
    ]
    return markdown(("seconds of", "constants", "points", "worst, %"), rows)


def _curves_table(model: Model) -> str:
    rows = [
        [
            own.name,
            *(f"{own.terms[term]:.4g}" if term in own.terms else "" for term in LOGS),
            str(len(own.points)),
            _off(own),
        ]
        for own in model.curves
    ]
    return markdown(("logarithm of", *LOGS, "points", "worst, %"), rows)


def _off(own: Fitted) -> str:
    return f"{100 * own.worst:.0f}"


def _points_table(model: Model) -> str:
    rows = [
        [own.name, name, f"{value:.3g}", f"{said:.3g}", f"{100 * (said / value - 1):+.0f}"]
        for own in model.sums
        for name, value, said in own.points
    ]
    return markdown(("fitted", "point", "measured, s", "said, s", "off, %"), rows)


def _held_out_table(model: Model, points: Sequence[Point]) -> str:
    rows = []
    for point in points:
        if point.what == "held":
            said = model.copies(point.partitions, point.edges)
            rows.append([str(point), f"{point.held:.2f}", f"{said:.2f}", f"{100 * (said / point.held - 1):+.0f}"])
    return markdown(("graph", "measured", "said", "off, %"), rows)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options of this benchmark."""
    parser.add_argument("--folder", type=Path, default=FOLDER, help="of measured.csv and simulated.csv")
    parser.add_argument(
        "--write", type=Path, help="page whose tables are replaced, each below a comment with its title"
    )
    parser.add_argument("--pictures", type=Path, help="folder for what scaling_pictures.py draws of them, SVG")
    parser.add_argument("--edges", type=float, default=1e11)
    parser.add_argument("--nodes", type=int, default=32)
    parser.add_argument("--gpus", type=int, default=8, help="of each node (8)")


def report(options: argparse.Namespace) -> None:
    """Fit and print."""
    machines = Machines(options.nodes, options.gpus)
    points, simulated = read_points(options.folder / "measured.csv"), read_csv(options.folder / "simulated.csv")
    found = tables(points, simulated, machines, options.edges)
    for title, text in found.items():
        print(f"{title}:\n\n{text}\n")
    if options.write:
        write_page(options.write, found)
    if options.pictures:
        from benchmarks.scaling_pictures import pictures  # which is made of what is here

        for name, drawn in pictures(points, simulated, machines, options.edges).items():
            (options.pictures / name).write_text(drawn, encoding="utf-8")


def tables(points: Sequence[Point], simulated: Sequence[Simulated], machines: Machines, edges: float) -> dict[str, str]:
    """Title → table, as in docs/scaling.md."""
    model = fit_model(points, simulated)
    found = jobs(model, simulated, edges, machines.workers)
    return {
        "Bytes an edge": _bytes_table(simulated),
        "Simulated": _simulated_table(simulated),
        "Constants": _constants_table(model),
        "Predicted against measured": _points_table(model),
        "Curves": _curves_table(model),
        "Copies of edges, measured on GPUs and not fitted to": _held_out_table(model, points),
        "Peeling in step, said": _in_step_table(model, points),
        "Memory": _memory_table(machines, found),
        "Time, s": _time_table(model, machines, found),
        "Where terms break, G edges": _limit_table(model, machines, found),
    }


def _in_step_table(model: Model, points: Sequence[Point]) -> str:
    """On other numbers of GPUs than were measured."""
    rows = []
    for point in points:
        if point.what == "in step" and point.method == "hash":
            line = [point.graph, f"{point.one_device:.2f}", f"{point.seconds:.2f}"]
            for gpus in (2, 4, 8):
                share = min(1.0, model.copies(gpus, point.edges) / gpus)
                said = model.in_step(point.one_device * share, point.rounds)
                line += [f"{share:.2f}", f"{said:.2f}"]
            rows.append(line)
    head = (
        "graph",
        "one GPU, s",
        "four, measured, s",
        *(f"{n}: {what}" for n in (2, 4, 8) for what in ("share", "said, s")),
    )
    return markdown(head, rows)


def write_page(page: Path, found: Mapping[str, str]) -> None:
    """Put each table below `<!-- its title -->` in a page, in place of the one that is there. LookupError without."""
    text = page.read_text(encoding="utf-8")
    for title, table in found.items():
        before, mark, after = text.partition(f"<!-- {title} -->\n\n")
        if not mark:
            raise LookupError(f"{page} has no place for {title!r}")
        old = re.match(r"(\|.*\n)*", after)
        assert old is not None
        rest = after[old.end() :].lstrip("\n")  # a line right below a table would be a row of it
        text = f"{before}{mark}{table}\n\n{rest}"
    page.write_text(text, encoding="utf-8")


def _bytes_table(simulated: Sequence[Simulated]) -> str:
    chosen = [one for one in simulated if one.partitions in (4, 64) and one.exchanges]
    names = list(STAGES)
    rows = [
        [f"{one.graph}, {one.partitions} {one.method}", *(f"{traffic(one)[name] / one.edges:.3g}" for name in names)]
        for one in chosen
    ]
    return markdown(("graph", *names), rows)


def _simulated_table(simulated: Sequence[Simulated]) -> str:
    head = (
        "graph",
        "partitions",
        "copies",
        "held",
        "largest, %",
        "one vertex, %",
        "cut, %",
        "lists/edge",
        "rounds",
        "exchanges",
        "messages an exchange",
        "ids/edge",
        "evaluations/edge",
        "of the slowest",
    )
    rows = [
        [
            one.graph,
            f"{one.partitions} {one.method}",
            f"{one.replication:.2f}",
            f"{one.held:.2f}",
            f"{100 * one.held_most / one.edges:.1f}",
            f"{100 * one.vertex_most / one.edges:.1f}",
            f"{100 * one.cut / one.edges:.0f}",
            f"{one.list_entries / one.edges:.2f}",
            str(one.rounds),
            *(
                [
                    str(one.exchanges),
                    f"{one.parts / one.exchanges:.0f}",
                    f"{one.ids / one.edges:.2f}",
                    f"{one.evaluations / one.edges:.1f}",
                    f"{one.evaluations_slowest / one.edges:.2f}",
                ]
                if one.exchanges
                else [""] * 5
            ),
        ]
        for one in sorted(simulated, key=lambda one: (one.graph, one.method, one.partitions))
        if one.partitions in (4, 16, 64, 256)
    ]
    return markdown(head, rows)


def _memory_table(machines: Machines, found: Sequence[Job]) -> str:
    head = ("like", "copies", "GB a GPU, mean", "largest", "of 2^31 - 2 edges", "lists, GB a GPU", "fits")
    rows = []
    for job in found:
        mean = EDGE_BYTES * job.local / machines.workers
        lists = 24 * job.lists * job.edges / machines.workers
        edges = job.local * job.most / machines.workers / MAX_LOCAL_EDGES
        room = FILL * machines.memory
        fits = mean * job.most <= room and lists <= room and edges <= 1
        rows.append(
            [
                job.name,
                f"{job.held:.2f}",
                _round(mean / 1e9),
                _round(mean * job.most / 1e9),
                f"{edges:.2f}",
                _round(lists / 1e9),
                "yes" if fits else "no",
            ]
        )
    return markdown(head, rows)


def _time_table(model: Model, machines: Machines, found: Sequence[Job]) -> str:
    partitions = machines.workers
    times = [stage_times(model, machines, job, partitions, partitions) for job in found]
    rows = [
        [f"{stage}: {part}", *(str(own[stage][part]) for own in times)]
        for stage, parts in times[0].items()
        for part in parts
    ]
    rows.append(["all", *(str(total(own)) for own in times)])
    default = [stage_times(model, machines, job, job.edges / BLOCK_ROWS, partitions)["number"] for job in found]
    rows.append(["number: scheduler, 2 M rows a block", *(str(own["scheduler"]) for own in default)])
    by_node = [replace(job, parts=1.0) for job in found]
    of_nodes = [stage_times(model, machines, job, partitions, machines.nodes)["bound"] for job in by_node]
    rows.append(["bound: scheduler, a partition a node", *(str(own["scheduler"]) for own in of_nodes)])
    return markdown(("", *(job.name for job in found)), rows)


def total(times: Mapping[str, Mapping[str, Span]]) -> Span:
    """All stages, one after the other, and within each all parts."""
    return sum((span for parts in times.values() for span in parts.values()), Span(0, 0))


def _limit_table(model: Model, machines: Machines, found: Sequence[Job]) -> str:
    all_limits = sorted(limits(model, machines), key=lambda limit: limit.breaks(found[0]))
    rows = [[own.term, own.where, *(_round(own.breaks(job) / 1e9) for job in found)] for own in all_limits]
    return markdown(("term", "from", *(job.name for job in found)), rows)
