"""The steps from the graph to the tables: bounding, programs, dense groups, tracks, and publishing.

A run without λ has programs and their columns of vertices alone.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from operator import add
from typing import TYPE_CHECKING

from ..bounding.bounding_checkpoint import BoundingCheckpoint
from ..checkpoint.checkpoint import Graph
from ..cluster.engine import Engine, Future
from ..nightly.lineage import Lineage
from ..nightly.track_assignment import Buckets, TrackedGroups, assign_tracks
from ..output.manifest import Manifest
from ..stages.extracting import Groups, KnownLambda, extract
from ..stages.publishing import (
    EdgeFindings,
    Findings,
    Published,
    publish_results,
    publish_vertices,
    start_edges,
    tables_to_write,
)
from .bounding import bound_graph, table_format
from .context import RunContext
from .result_manifest import Outcome, manifest_of

if TYPE_CHECKING:
    from ...tasks.update.order import Order
    from ...tasks.update.programs.arcs import Arcs
    from ..programs.running import ProgramResults
    from ..programs.saving import KeptPrograms


@dataclass(frozen=True)
class Made:
    """The tables of a run."""

    manifest: Manifest
    order: Order | None = None
    """The order of peeling of their edges, if it was recorded."""
    arcs: Arcs | None = None
    """The directions and weights of their edges, if the run keeps a state and programs have read some."""


def make_tables(
    run: RunContext, graph: Graph, progress: BoundingCheckpoint, kept: KeptPrograms, lineage: Callable[[], Lineage]
) -> Made:
    """Find λ and the values that depend on it, run the programs, and write all tables.

    `kept` has programs that need not run again. `lineage` returns the earlier results from which DN-graphs may take
    tracks. Raises StateLost if a worker is lost together with state that is not in a checkpoint.
    """
    events, source, buckets = run.events, run.source, graph.buckets
    engine = run.engine.for_tasks(len(buckets.edges))
    known = bound_graph(run, graph, progress) if run.plan.finds_lambda else None
    degrees = graph.partitions.degrees
    ran, supports = None, None if known is None else known.results
    if run.settings.programs.vertex_programs:
        from ..programs.running import run_programs

        ran = run_programs(engine, events, run.settings, source, buckets, degrees, kept, supports)
    if known is None:
        assert ran is not None  # the settings name a program
        return Made(_publish_programs(run, engine, graph, ran))
    files, converged = run.plan.files, known.bounded.converged
    how = table_format(run, converged)
    added = _of_edges(engine, known.estimates, None if ran is None else ran.of_edges)
    edge_files: list[Future] = []

    def write_edges() -> None:
        found = EdgeFindings(buckets, degrees, known.results, added, known.encoded)
        edge_files.extend(start_edges(engine, found, how))

    groups = tracked = None
    if converged:
        graph_of_lambda = KnownLambda(buckets.edges, degrees, known.results, buckets.starts)
        groups = extract(engine, events, graph_of_lambda, run.plan.partitions, run.space, write_edges)
    with events.stage("publish", tables_to_write(len(buckets.edges), files, groups is not None)) as stage:
        if groups is None:
            write_edges()
        else:
            tracked = _follow(run, engine, graph, groups, lineage())
        published = publish_results(
            engine,
            stage,
            Findings(
                buckets,
                degrees,
                known.results,
                groups,
                tracked.tracks if tracked else [],
                None if ran is None else ran.columns,
            ),
            edge_files,
            how,
        )
        published = _with_pairs(run, engine, graph, ran, published, files)
    outcome = Outcome(
        known.bounded,
        known.unsettled,
        published,
        groups.record if groups else None,
        tracked.record if tracked else None,
        [] if ran is None else ran.records,
    )
    order = None if known.order is None else engine.gather([known.order])[0]
    return Made(manifest_of(run, graph, outcome), order, _arcs(run, engine, graph))


def _arcs(run: RunContext, engine: Engine, graph: Graph) -> Arcs | None:
    directed, weighted = run.source.directed, run.source.weights is not None
    is_read = run.settings.programs.vertex_programs and (directed or weighted)
    if not (run.keeps_state and is_read) or len(graph.subgraphs) > 1:
        return None
    from ...tasks.update.programs.arcs import Arcs

    return Arcs.of(engine.gather(graph.buckets.edges), directed, weighted)


def _publish_programs(run: RunContext, engine: Engine, graph: Graph, ran: ProgramResults) -> Manifest:
    """Write the table of vertices of a run without λ."""
    buckets, degrees, files = graph.buckets, graph.partitions.degrees, run.plan.files
    with run.events.stage("publish", files * len(buckets.edges)) as stage:
        published = publish_vertices(engine, stage, buckets, degrees, ran.columns, table_format(run))
        published = _with_pairs(run, engine, graph, ran, published, files)
    return manifest_of(run, graph, Outcome(None, 0, published, None, None, ran.records))


def _of_edges(engine: Engine, estimates: list[Future] | None, columns: list[Future] | None) -> list[Future] | None:
    """[buckets] the added columns of edges: estimates of λ, then those of programs."""
    if estimates is None or columns is None:
        return columns if estimates is None else estimates
    return engine.map("edge-columns", add, list(zip(estimates, columns, strict=True)))


def _with_pairs(
    run: RunContext, engine: Engine, graph: Graph, ran: ProgramResults | None, published: Published, files: int
) -> Published:
    """The same after the table of distances, if there is one, has been written."""
    if ran is None or ran.pairs is None:
        return published
    from ..programs.results import publish_pairs

    written = publish_pairs(engine, graph.buckets, run.source.kind, ran.pairs, table_format(run))
    return replace(published, files=[*published.files, *written])


def _follow(run: RunContext, engine: Engine, graph: Graph, groups: Groups, lineage: Lineage) -> TrackedGroups:
    buckets = graph.buckets
    found = Buckets(buckets.ids, groups.found, buckets.starts, groups.highest, run.source.id_type)
    return assign_tracks(engine, run.events, found, lineage)
