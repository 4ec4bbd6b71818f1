"""The terms of docs/scaling.md: bytes, seconds and memory of a run in shards."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import ceil, exp, log, log2
from pathlib import Path

from benchmarks.scaling_fit import Curve, Fit, Span, fit_curve, fit_sum
from benchmarks.shard_counts import ShardCounts

INGEST = ("read", "number", "partition", "publish")
BLOCK_ROWS = 2_000_000
"""The default of ingest.rows_per_block."""
MOST_VERTICES = 2**32 - 2
"""Ranks are uint32."""
MOST_IN_A_ROUND = 2**29
"""Edges that may leave in one round (kernels/cpu/shards/group.py)."""
MOST_HALVES = 2**32 - 2
"""Halves of a group are numbered by uint32."""
STREAM_EDGES = 2**22
"""Edges that pass by a group at a time, at least."""
ROW_HEADER, ENTRY, TABLE, HALF, IN_ROUND, INGEST_ROW = 16, 8, 17, 20, 24, 60
"""Bytes on a GPU: of a vertex; of an entry; of its place in a table, where its row is long; of a half; of an edge of
the running round; of a row that is read and numbered. docs/scaling.md says what they consist of.
"""
INGESTING, STREAMS = "ingest, publishing: network", "triangles: streams, counts"
REMOVALS, MESSAGES = "removal: told to all", "removal: messages"
"""Terms that are bytes."""
BITMAP = 0.25
"""Bytes a vertex of a bitmap with prefix counts (kernels/cpu/shards/rows.py)."""
LOOKUPS = Span(2, 4)
"""Reads at random for an edge in a shard: two row headers, and the rows where both ends have one."""
FILL = 0.9
"""Share of a GPU's memory that may be taken."""


@dataclass(frozen=True)
class Point:
    """Something measured; numbers that do not matter to it are 0."""

    what: str
    graph: str
    source: str
    edges: float
    triangles: float
    rows: float
    rounds: float
    devices: float
    count: float
    """Tasks, letters, or edges of the largest round."""
    seconds: float

    def __str__(self) -> str:
        return f"{self.graph}, {self.devices:.0f} GPUs" if self.devices > 1 else self.graph


def read_points(path: Path) -> list[Point]:
    """The lines of measured.csv."""
    text = {"what", "graph", "source"}
    with path.open(newline="") as file:
        return [
            Point(**{name: value if name in text else float(value or 0) for name, value in line.items()})  # type: ignore[arg-type]
            for line in csv.DictReader(file)
        ]


@dataclass(frozen=True)
class Model:
    """All that is fitted, and what is taken from the counts as it is."""

    sums: Mapping[str, Fit]
    """What takes time → seconds; of ingest for machines of 1 and of 4 GPUs."""
    curves: Mapping[str, Curve]
    """What R-MAT has, by edges."""
    uneven: Span
    """Triangles of the busiest shard over the mean."""
    messages: Span
    """Alarms, reports and grants for each edge."""
    exchanges: Span
    """Exchanges for each round of one partition."""
    rounds: Span
    """Rounds of real graphs over those of R-MAT of that size."""
    largest: Span
    """Edges of the largest round over all edges with triangles."""


def fit_model(points: Sequence[Point], counts: Sequence[ShardCounts]) -> Model:
    """Fit everything."""
    by_what: dict[str, list[Point]] = {}
    for point in points:
        by_what.setdefault(point.what, []).append(point)

    def fitted(what: str, name: str, terms: Sequence[str], amounts: Callable[[Point], Sequence[float]]) -> Fit:
        return fit_sum(name, terms, [(str(p), p.seconds, amounts(p)) for p in by_what[what]])

    sums = {
        "support": fitted("support", "supports, one GPU", ["triangle", "stage"], lambda p: (p.triangles, 1)),
        "peel": fitted("peel", "peeling, one GPU", ["triangle", "round"], lambda p: (p.triangles, p.rounds)),
        "scheduler": fitted("scheduler", "scheduler", ["task", "exchange"], lambda p: (p.count, 1)),
        "letters": fitted("letters", "letters by Dask's comms", ["letter", "exchange"], lambda p: (p.count, 1)),
    }
    for stage in INGEST:
        for gpus in (1, 4):
            own = [(str(p), p.seconds, (p.rows, 1)) for p in by_what[stage] if p.devices == gpus]
            name = f"{stage}, a machine of {gpus} GPU{'s' * (gpus > 1)}"
            sums[f"{stage} {gpus}"] = fit_sum(name, ["row", "stage"], own)
    rmat = [one for one in counts if one.graph.startswith("rmat")]
    graphs = list({one.graph: one for one in rmat}.values())

    def growth(name: str, value: Callable[[ShardCounts], float]) -> Curve:
        return fit_curve(name, [(one.graph, value(one), one.all_edges) for one in graphs])

    curves = {
        "triangles": fit_curve(
            "triangles an edge", [(p.graph, p.triangles / p.edges, p.edges) for p in by_what["peel"]]
        ),
        "rounds": fit_curve("rounds of one GPU", [(p.graph, p.rounds, p.edges) for p in by_what["peel"]]),
        "vertices": growth("edges a vertex", lambda one: one.all_edges / one.vertices),
        "local": growth("share of edges with triangles", lambda one: one.edges / one.all_edges),
    }
    rounds = {p.graph: p for p in by_what["rounds"]}
    peeled = [one for one in counts if one.exchanges and one.shards in (16, 64)]
    real = [p.rounds / curves["rounds"](p.edges) for p in rounds.values()]
    return Model(
        sums,
        curves,
        Span(1, max(one.triangles_uneven for one in peeled if one.edges > 1e6)),
        span_of([one.alarms + one.reports + one.grants for one in peeled]),
        span_of([one.exchanges / rounds[one.graph].rounds for one in peeled]),
        span_of(real),
        span_of([p.count / p.edges for p in rounds.values() if p.count]),
    )


def span_of(values: Sequence[float]) -> Span:
    """Least and greatest."""
    return Span(min(values), max(values))


@dataclass(frozen=True)
class Machines:
    """What computes, and what is assumed of it."""

    nodes: int = 32
    gpus: int = 8
    """Of each node; one shard each."""
    memory: float = 141e9
    """Of each GPU."""
    network: Span = field(default=Span(1 / 50e9, 1 / (1.4 * 2**30)))
    """Seconds a byte from a GPU to another node: 400 Gb/s, and TCP between two workers as measured."""
    nvlink: Span = field(default=Span(1 / 400e9, 1 / 150e9))
    """Seconds a byte between GPUs of a node."""
    lookup: Span = field(default=Span(1 / 60e9, 1 / 20e9))
    """Seconds of a read at random from the memory of a GPU."""
    task: float = 1 / 5000
    """Seconds of the scheduler for a task, at best."""
    nvlink_meeting: Span = field(default=Span(76e-6, 118e-6))
    """Seconds of a meeting of two GPUs over NVLink, as measured."""
    socket_meeting: Span = field(default=Span(64e-6, 144e-6))
    """The same over sockets."""

    @property
    def shards(self) -> int:
        """One for each GPU."""
        return self.nodes * self.gpus


@dataclass(frozen=True)
class Graph:
    """A graph as far as the model needs it."""

    edges: float
    vertices: float
    local: float
    """Edges with triangles."""
    triangles: float


def rmat(model: Model, edges: float) -> Graph:
    """R-MAT of so many edges, by the curves."""
    of = {name: curve(edges) for name, curve in model.curves.items()}
    return Graph(edges, edges / of["vertices"], min(1.0, of["local"]) * edges, of["triangles"] * edges)


@dataclass(frozen=True)
class Layout:
    """How groups meet."""

    name: str
    relayed: bool = False
    """Whether a node gets each removal and each stream once, and passes it on to its GPUs."""
    steps: bool = False
    """Whether nodes meet in log2 steps over sockets, instead of by a letter to each."""
    bundled: bool = False
    """Whether what one task sends to another is no task of its own."""


LAYOUTS = (
    Layout("a group a GPU, letters to all"),
    Layout("a group a node", relayed=True),
    Layout("and log2 steps", relayed=True, steps=True),
    Layout("and parts without tasks", relayed=True, steps=True, bundled=True),
)


@dataclass(frozen=True)
class Move:
    """Bytes that an exchange brings to each GPU, or takes from it."""

    term: str
    """Of `times`."""
    exchange: str
    formula: str
    each: Span
    shared: bool = False
    """Whether all GPUs want the same bytes, so that a node needs them once."""


def moves(model: Model, machines: Machines, graph: Graph) -> list[Move]:
    """All exchanges of a run. w is the size of a vertex number before there are ranks."""
    w = 4 if graph.vertices < 2**31 else 8
    own, local = graph.edges / machines.shards, graph.local / machines.shards
    one = Span(1, 1)
    return [
        Move(INGESTING, "ids, degrees, ranks, names", "2 to 25 E / P", Span(2, 25) * own),
        Move(INGESTING, "pairs", "2w E / P", one * (2 * w * own)),
        Move(INGESTING, "edges to owners", "8 E / P", one * (8 * own)),
        Move(STREAMS, "streams", "4 E, and 8 for each low end of a bucket", Span(4.3, 8.5) * graph.edges, True),
        Move(STREAMS, "partial counts", "4 E", one * (4 * graph.edges), True),
        Move(INGESTING, "sums of owners", "4 E / P", one * (4 * own)),
        Move(INGESTING, "edges with triangles", "28 L / P", one * (28 * local)),
        Move(MESSAGES, "partners of halves", "8 L / P", one * (8 * local)),
        Move(REMOVALS, "removals", "8 L", one * (8 * graph.local), True),
        Move(MESSAGES, "alarms, reports, grants", "8 for each, 2 to 4 L / P of them", model.messages * (8 * local)),
        Move(
            MESSAGES,
            "headers of letters",
            "60 P an exchange",
            exchanges_of(model, graph.edges) * (60 * machines.shards),
        ),
        Move(INGESTING, "λ", "8 L / P", one * (8 * local)),
    ]


def times(model: Model, machines: Machines, graph: Graph, layout: Layout) -> dict[str, Span]:
    """Term → seconds. Nothing overlaps. A shard is a GPU; blocks are as many as shards."""
    shards, sums, edges = machines.shards, model.sums, graph.edges
    away = 1 - 1 / machines.nodes
    sharing = machines.gpus if layout.relayed else 1
    found = moves(model, machines, graph)

    def network(term: str) -> Span:
        bytes_ = sum_of([move.each * (away / sharing if move.shared else away) for move in found if move.term == term])
        inside = sum_of([move.each for move in found if move.term == term and move.shared and layout.relayed])
        return bytes_.times(machines.network) + inside.times(machines.nvlink)

    works = [
        span_of_both(*(sums[f"{stage} {gpus}"].span(edges / machines.nodes, 1) for gpus in (1, 4))) for stage in INGEST
    ]
    exchanges = exchanges_of(model, edges)
    return {
        "ingest, publishing: work": sum_of(works),
        INGESTING: network(INGESTING),
        "scheduler": scheduler(model, machines, tasks(machines, edges, shards, layout)),
        "triangles: work": model.uneven * (sums["support"](graph.triangles, 0) / shards),
        STREAMS: network(STREAMS),
        "triangles: lookups": machines.lookup.times(LOOKUPS) * edges,
        "removal: work": model.uneven * (sums["peel"](graph.triangles, 0) / shards)
        + exchanges * sums["peel"].terms["round"],
        REMOVALS: network(REMOVALS),
        "removal: lookups": machines.lookup.times(LOOKUPS) * graph.local,
        MESSAGES: network(MESSAGES),
        "removal: exchanges": exchanges.times(meetings(model, machines, layout)),
    }


def exchanges_of(model: Model, edges: float) -> Span:
    """Exchanges of graphs of so many edges."""
    return model.exchanges.times(model.rounds) * model.curves["rounds"](edges)


def meetings(model: Model, machines: Machines, layout: Layout) -> Span:
    """Seconds of an exchange in which little is said."""
    inside = machines.nvlink_meeting if layout.relayed else Span(0, 0)
    if layout.steps:
        return inside + machines.socket_meeting * ceil(log2(machines.nodes))
    peers = (machines.nodes if layout.relayed else machines.shards) - 1
    return inside + model.sums["letters"].span(peers, 1)


def tasks(machines: Machines, edges: float, blocks: float, layout: Layout) -> float:
    """Tasks that the scheduler knows: three exchanges of blocks and buckets, two of degrees, the streams, five more."""
    shards = machines.shards
    groups = machines.nodes if layout.relayed else shards
    batches = edges / max(STREAM_EDGES, edges / (2 * groups))
    streams = batches * (2 * groups + shards / batches * groups + 1)
    if layout.bundled:
        return 8 * shards + 3 * blocks + streams
    return 3 * blocks * shards + 2 * shards**2 + streams + 4 * shards * groups + 2 * shards**2


def scheduler(model: Model, machines: Machines, count: float) -> Span:
    """Seconds of the scheduler for so many tasks: at best, and as measured."""
    return Span(machines.task, max(machines.task, model.sums["scheduler"].terms["task"])) * count


def span_of_both(one: Span, other: Span) -> Span:
    """From the least to the greatest."""
    return Span(min(one.least, other.least), max(one.most, other.most))


def sum_of(spans: Sequence[Span]) -> Span:
    """One after the other."""
    return sum(spans, Span(0, 0))


def memory(model: Model, machines: Machines, graph: Graph) -> dict[str, Span]:
    """Term → bytes of each GPU in bounding."""
    entries = 2 * graph.local / machines.shards
    return {
        "row headers": Span(1, 1) * (ROW_HEADER * graph.vertices),
        "entries and halves": Span(1, 1) * ((ENTRY + HALF) * entries),
        "tables of long rows": Span(0, TABLE) * entries,
        "largest round": model.largest * (IN_ROUND * graph.local),
    }


@dataclass(frozen=True)
class Limit:
    """Something that breaks, and the edges at which it does: R-MAT's curves, and a graph of ten edges a vertex."""

    term: str
    where: str
    rmat: float
    sparse: float


def limits(model: Model, machines: Machines) -> list[Limit]:
    """What breaks, the first one first."""
    room, shards = FILL * machines.memory, machines.shards
    rate = model.sums["scheduler"].terms["task"]

    def held(graph: Graph, header: float, in_round: float) -> float:
        parts = memory(model, machines, graph)
        rest = parts["entries and halves"].most + parts["tables of long rows"].most
        return header * graph.vertices + rest + in_round * parts["largest round"].most

    def limit(term: str, where: str, over: Callable[[Graph], float]) -> Limit:
        return Limit(term, where, solve(lambda e: over(rmat(model, e))), solve(lambda e: over(sparse(model, e))))

    found = [
        limit(
            "edges of the largest round",
            "2^29 (`MOST_IN_A_ROUND`)",
            lambda g: model.largest.most * g.local / MOST_IN_A_ROUND,
        ),
        limit(
            "memory, with the largest round in one piece",
            f"{IN_ROUND} B an edge of it",
            lambda g: held(g, ROW_HEADER, 1) / room,
        ),
        limit("memory, rounds in pieces", f"{ROW_HEADER} B a vertex", lambda g: held(g, ROW_HEADER, 0) / room),
        limit("the same with bitmaps", f"{BITMAP} B a vertex", lambda g: held(g, BITMAP, 0) / room),
        limit("vertices", "2^32 - 2, ranks are uint32", lambda g: g.vertices / MOST_VERTICES),
        limit("halves of a group", "2^32 - 2", lambda g: 2 * g.local / shards / MOST_HALVES),
        limit("memory while ingesting", f"{INGEST_ROW} B a row", lambda g: INGEST_ROW * g.edges / shards / room),
        limit("rows of a bucket", "int32", lambda g: g.edges / shards / 2**31),
        limit(
            "an hour of the scheduler",
            "`number`, 2 M rows a block",
            lambda g: rate * 3 * shards * g.edges / BLOCK_ROWS / 3600,
        ),
        limit(
            "an hour of exchanges, at worst",
            f"{shards} groups, Dask's comms",
            lambda g: exchanges_of(model, g.edges).times(meetings(model, machines, LAYOUTS[0])).most / 3600,
        ),
    ]
    return sorted(found, key=lambda own: own.sparse)


def sparse(model: Model, edges: float) -> Graph:
    """As R-MAT, with ten edges a vertex."""
    return replace(rmat(model, edges), vertices=edges / 10)


def solve(over: Callable[[float], float]) -> float:
    """The edges at which a growing quantity is 1, by bisection of logarithms."""
    least, most = log(1e6), log(1e16)
    for _ in range(100):
        middle = (least + most) / 2
        least, most = (middle, most) if over(exp(middle)) < 1 else (least, middle)
    return exp(least)
