"""The constants of the model, fitted to what was measured and counted."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from .fit import Curve, Fit, Measured, fit_curve, fit_sum
from .machines import Graph
from .points import Point, ShardCounts
from .spans import Span

STAGES = ("read", "number", "partition", "extract", "publish")
"""Stages that take time for each row."""
MACHINES = (1, 4)
"""GPUs of the machines on which stages were measured."""
EACH_SHARD = "edge, in each shard"
EACH_GPU = "GPU of the host"
ROUND_PARTS = ("remove", "look", "meet", "outside")


@dataclass(frozen=True)
class Model:
    """All that is fitted, and what is taken from the counts as it is."""

    sums: Mapping[str, Fit]
    """What takes time → seconds. Of stages: name and GPUs of the machine."""
    curves: Mapping[str, Curve]
    """A property of R-MAT → its curve."""
    uneven: Span
    """Triangles of the busiest shard over the mean."""
    messages: Span
    """Alarms, reports and grants for each edge with triangles."""
    exchanges: Span
    """Exchanges for each round of one partition."""
    rounds: Span
    """Rounds of graphs over those of R-MAT's curve."""
    largest: Span
    """Edges of the largest round over edges with triangles."""
    in_a_run: Span
    """Seconds of peeling in a whole run over those of the model."""

    def rmat(self, edges: float) -> Graph:
        """R-MAT of so many edges, by the curves."""
        of = {name: curve(edges) for name, curve in self.curves.items()}
        return Graph(edges, edges / of["vertices"], min(1.0, of["local"]) * edges, of["triangles"] * edges)

    def exchanges_of(self, edges: float) -> Span:
        """Exchanges of graphs of so many edges."""
        return self.exchanges * self.rounds * self.curves["rounds"](edges)


def fit_model(points: Sequence[Point], counts: Sequence[ShardCounts]) -> Model:
    """Fit everything."""
    of: dict[str, list[Point]] = {}
    for point in points:
        of.setdefault(point.what, []).append(point)
    curves = _curves(of, counts)
    sums = _sums(of, curves["local"])
    rounds = {point.graph: point for point in of["rounds"]}
    peeled = [one for one in counts if one.exchanges and one.shards in (16, 64)]
    ratios = [one.exchanges / rounds[one.graph].rounds for one in peeled]
    ratios += [point.count / point.rounds for point in of["shards"] if point.count]
    whole = [point for point in of["shards"] if not point.count]
    said = [peeling(sums, curves, point, max(ratios)) for point in whole]
    return Model(
        sums,
        curves,
        Span(1, max(one.triangles_uneven for one in peeled if one.edges > 1e6)),
        Span.of(one.alarms + one.reports + one.grants for one in peeled),
        Span.of(ratios),
        Span.of(point.rounds / curves["rounds"](point.edges) for point in of["rounds"]),
        Span.of(point.count / point.edges for point in of["rounds"] if point.count),
        Span(1, max(point.seconds / own for point, own in zip(whole, said, strict=True))),
    )


def peeling(sums: Mapping[str, Fit], curves: Mapping[str, Curve], point: Point, ratio: float) -> float:
    """Seconds of peeling on the GPUs of one host. `ratio` is the exchanges of each round, if they were not counted."""
    local = curves["local"](point.edges) * point.edges
    exchanges = point.count or ratio * curves["rounds"](point.edges)
    return (
        sums["remove"](point.triangles / point.devices, local, 0)
        + sums["look"](exchanges, local / point.devices)
        + sums["meet"](exchanges, exchanges * point.devices)
        + sums["outside"](1, local / point.devices)
    )


def _sums(of: Mapping[str, Sequence[Point]], share: Curve) -> dict[str, Fit]:
    def fitted(
        what: str, name: str, terms: Sequence[str], amounts: Callable[[Point], tuple[float, ...]], devices: float = 0
    ) -> Fit:
        own = [one for key in what.split() for one in of[key] if not devices or one.devices == devices]
        return fit_sum(name, terms, [Measured(label(one), one.seconds, amounts(one)) for one in own])

    def local(point: Point) -> float:
        return share(point.edges) * point.edges

    def streamed(point: Point) -> float:
        return point.edges if point.what != "support" else 0

    sums = {
        "support": fitted(
            "support support-shards",
            "counting triangles",
            ["triangle of a shard", EACH_SHARD, "stage"],
            lambda p: (p.triangles / p.devices, streamed(p), 1),
        ),
        "sort": fitted(
            "sort-send",
            "sorting edges, sums, halves",
            ["edge of a shard"],
            lambda p: (p.edges / p.devices,),
        ),
        "remove": fitted(
            "peel remove",
            "removing edges",
            ["triangle of a shard", EACH_SHARD, "round of one GPU"],
            lambda p: (
                p.triangles / p.devices,
                local(p) if p.what == "remove" else 0,
                p.rounds if p.what == "peel" else 0,
            ),
        ),
        "look": fitted(
            "look-write-take",
            "looking, writing, taking in",
            ["exchange", "edge of a shard"],
            lambda p: (p.count, local(p) / p.devices),
        ),
        "meet": fitted(
            "meet",
            "an exchange within a host",
            ["exchange", EACH_GPU],
            lambda p: (p.count, p.count * p.devices),
        ),
        "outside": fitted(
            "outside",
            "rows and tables",
            ["run", "edge of a shard"],
            lambda p: (1, local(p) / p.devices),
        ),
        "scheduler": fitted("scheduler", "the scheduler", ["task", "exchange"], lambda p: (p.count, 1)),
        "packets": fitted("packets", "packets by Dask's comms", ["packet", "exchange"], lambda p: (p.count, 1)),
    }
    sums["nccl"] = _fit_nccl(of["nccl"], of)
    for stage in STAGES:
        for gpus in MACHINES:
            name = f"{stage}, a machine of {gpus} GPU{'s' * (gpus > 1)}"
            sums[f"{stage} {gpus}"] = fitted(stage, name, ["row", "stage"], lambda p: (p.rows, 1), gpus)
    return sums


def _fit_nccl(points: Sequence[Point], of: Mapping[str, Sequence[Point]]) -> Fit:
    """An exchange by NCCL over sockets: what is left of a run without the other parts of the same graph's peeling."""
    found = []
    for point in points:
        parts = [
            one.seconds
            for what in ("remove", "look-write-take", "outside")
            for one in of[what]
            if (one.edges, one.devices) == (point.edges, point.devices)
        ]
        found.append(Measured(label(point), point.seconds - sum(parts), (point.count,)))
    return fit_sum("NCCL between 4 processes, sockets", ["exchange"], found)


def label(point: Point) -> str:
    """Name of a point in pictures and errors."""
    return f"{point.what}, {point.graph}, {point.devices:.0f} GPUs"


def _curves(of: Mapping[str, Sequence[Point]], counts: Sequence[ShardCounts]) -> dict[str, Curve]:
    graphs = list({one.graph: one for one in counts if one.graph.startswith("rmat")}.values())
    peel, share = of["peel"], of["share"]
    sizes = {one.edges: one.triangles / one.edges for one in [*peel, *share]}
    local = [(one.graph, one.edges / one.all_edges, float(one.all_edges)) for one in graphs]
    local += [(one.graph, one.local / one.edges, one.edges) for one in share]

    def curve(name: str, points: Sequence[tuple[str, float, float]]) -> Curve:
        return fit_curve(name, [Measured(graph, value, (edges,)) for graph, value, edges in points])

    return {
        "triangles": curve("triangles an edge", [("R-MAT", value, edges) for edges, value in sizes.items()]),
        "rounds": curve("rounds of one GPU", [(one.graph, one.rounds, one.edges) for one in peel]),
        "vertices": curve(
            "edges a vertex", [(one.graph, one.all_edges / one.vertices, float(one.all_edges)) for one in graphs]
        ),
        "local": curve("share of edges with triangles", local),
    }
