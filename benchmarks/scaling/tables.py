"""The tables of docs/scaling.md, and those that say how the model was fitted."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.common.table import markdown

from .limits import counting_memory, limits, peeling_memory, room
from .machines import FLAT, FLAT_NCCL, LAYOUTS, Machines
from .model import EACH_GPU, EACH_SHARD, Model, peeling
from .moves import away, moves
from .points import Point
from .spans import Span, seconds_of, short, sum_of
from .times import exchange_seconds, tasks, times

SIZES = (1e9, 3e9, 1e10, 3e10, 1e11)
"""Edges of the graphs of the tables."""
LARGE_BLOCK = 1e8
"""Rows of a larger block than the default."""
FEW_NODES = 4
"""Nodes of 8 GPUs that the code uses at most."""


def tables(model: Model, points: Sequence[Point], machines: Machines) -> dict[str, str]:
    """Title → table, for the page."""
    return {
        "Checked": _checked(model, points),
        "Where terms break, G edges": _limits(model, machines),
        "Remedies, s at 100 G edges": _remedies(model, machines),
        "The present code, s": _present(model, machines),
    }


def details(model: Model, machines: Machines) -> dict[str, str]:
    """Title → table, for who checks the model: they are printed, and not on the page."""
    return {
        "Bytes, at 100 G edges": _bytes(model, machines),
        "Constants": _constants(model),
        "Curves": _curves(model),
        "Taken from the counts": _ranges(model),
        "Memory, GB a GPU": _memory(model, machines),
        "Exchanges and tasks, at 100 G edges": _exchanges(model, machines),
    }


def _sizes(edges: Sequence[float]) -> list[str]:
    return [f"{size / 1e9:.0f} G edges" for size in edges]


def _bytes(model: Model, machines: Machines) -> str:
    head = ("exchange", "bytes to or from a GPU", "GB", "from other nodes, if relayed")
    found = moves(model, machines, model.rmat(SIZES[-1]))
    rows = [
        [one.exchange, one.formula, *(str(s * 1e-9) for s in (one.each, away(one, machines, True)))] for one in found
    ]
    return markdown(head, rows)


def _constants(model: Model) -> str:
    rows = []
    for own in model.sums.values():
        texts = []
        for term, value in own.constants.items():
            ends = own.range_of(term) if term in (EACH_SHARD, EACH_GPU) else None
            within = f" ({seconds_of(ends.least, 2)} to {seconds_of(ends.most, 2)})" if ends else ""
            texts.append(f"{seconds_of(value)}{within} / {term}")
        rows.append([own.name, ", ".join(texts), str(len(own.points)), f"{100 * own.worst:.0f}"])
    return markdown(("time of", "constants", "points", "worst, %"), rows)


def _curves(model: Model) -> str:
    head = ("R-MAT of E edges", "factor", "power of E", "points", "worst, %", "of 100 G edges")
    rows = [
        [
            own.name,
            f"{own.factor:.4g}",
            f"{own.power:.4g}",
            str(len(own.points)),
            f"{100 * own.worst:.0f}",
            _three(own(1e11)),
        ]
        for own in model.curves.values()
    ]
    return markdown(head, rows)


def _three(value: float) -> str:
    """Three digits, without an exponent."""
    return f"{float(f'{value:.3g}'):,.0f}" if value >= 1000 else f"{value:.3g}"


def _ranges(model: Model) -> str:
    ranges = {
        "triangles of the busiest shard over the mean": model.uneven,
        "alarms, reports and grants an edge": model.messages,
        "exchanges for each round of one partition": model.exchanges,
        "rounds of graphs over those of R-MAT's curve": model.rounds,
        "edges of the largest round, % of those with triangles": model.largest * 100,
        "peeling in a whole run over the sum of its parts": model.in_a_run,
    }
    return markdown(("", "least - most"), [[name, str(own)] for name, own in ranges.items()])


def _checked(model: Model, points: Sequence[Point]) -> str:
    rows = []
    for point in points:
        if point.what == "shards":
            said = peeling(model.sums, model.curves, point, model.exchanges.most)
            rows.append([f"peeling, {point.graph}", f"{said:.2f} s", f"{point.seconds:.2f} s"])
    for point in points:
        if point.what == "memory":
            held = sum_of(list(peeling_memory(Machines(1, int(point.devices)), model.rmat(point.edges)).values()))
            rows.append([f"memory of a GPU, {point.graph}", f"{held * 1e-9} GB", f"{point.count / 1e9:.0f} GB"])
    return markdown(("", "model", "measured"), rows)


def _memory(model: Model, machines: Machines) -> str:
    graphs = [model.rmat(edges) for edges in SIZES]
    found = [peeling_memory(machines, graph) for graph in graphs]
    rows = [[term, *(str(own[term] * 1e-9) for own in found)] for term in found[0]]
    sums = [sum_of(list(own.values())) for own in found]
    counting = [counting_memory(machines, graph) for graph in graphs]
    rows.append(["all, while it peels", *(str(own * 1e-9) for own in sums)])
    rows.append(["all, while triangles are counted", *(str(own * 1e-9) for own in counting)])
    most = [max(own.most, other.most) for own, other in zip(sums, counting, strict=True)]
    usable = room(machines)
    rows.append([f"at most, of {usable / 1e9:.0f} GB", *(f"{short(100 * own / usable)} %" for own in most)])
    return markdown(("", *_sizes(SIZES)), rows)


def _limits(model: Model, machines: Machines) -> str:
    head = ("term", "from", "R-MAT", "10 edges a vertex")
    rows = [[one.term, one.where, short(one.rmat / 1e9), short(one.sparse / 1e9)] for one in limits(model, machines)]
    return markdown(head, rows)


def _remedies(model: Model, machines: Machines) -> str:
    graph = model.rmat(SIZES[-1])
    found = [times(model, machines, graph, layout) for layout in LAYOUTS]
    return _compared(found, [layout.name for layout in LAYOUTS])


def _exchanges(model: Model, machines: Machines) -> str:
    rows = []
    for way in LAYOUTS:
        counts = (tasks(machines, SIZES[-1], way, size) for size in (0, LARGE_BLOCK))
        meeting = exchange_seconds(model, machines, way) * 1e3
        rows.append([way.name, str(meeting), *(f"{count / 1e3:,.0f}" for count in counts)])
    found = model.exchanges_of(SIZES[-1]) * 1e-3
    head = (
        "",
        f"an exchange, ms (of {found.least:.0f},000 to {found.most:.0f},000)",
        "tasks, thousands",
        "the same, blocks of 100 M rows",
    )
    return markdown(head, rows)


def _present(model: Model, machines: Machines) -> str:
    few, sizes, rows = Machines(FEW_NODES, machines.gpus), SIZES[:-1], []
    for way in (FLAT, FLAT_NCCL):
        found = [times(model, few, model.rmat(edges), way) for edges in sizes]
        rows.append([way.name, *(str(sum_of(list(own.values()))) for own in found)])
        rows.append(["exchanges alone", *(str(own["removal: exchanges"]) for own in found)])
    return markdown(("", *_sizes(sizes)), rows)


def _compared(found: Sequence[Mapping[str, Span]], names: Sequence[str]) -> str:
    rows = [[term, *(str(own[term]) for own in found)] for term in found[0]]
    rows.append(["all", *(str(sum_of(list(own.values()))) for own in found)])
    return markdown(("", *names), rows)
