"""Read a graph, cut it into blocks, and estimate it by tasks over them.

The driver gets a few numbers for each block. No task and no driver holds the whole graph if it has several blocks.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext

from ...tasks.estimate import cliques, wedges
from ...tasks.estimate.wedges import Draws, WedgeCounts
from ...tasks.programs.shipped.coreness import Coreness
from ..cluster.client import Client
from ..cluster.connecting.local import check_device, check_least_workers
from ..cluster.connecting.start import connect
from ..cluster.engine import Engine, Future
from ..cluster.session import Session
from ..events import Events
from ..inputs.input_object import InputObject
from ..opening.context import Call, RunContext
from ..opening.input import RunInput, refuse_overlap
from ..output.staging import staging_for
from ..plan.seconds import predicted_seconds
from ..programs.blocks import GraphBlocks, cut_graph, place_blocks
from ..programs.running import run_on_blocks, warm_programs
from ..run.full import planned, restored
from ..settings.models import ProgramsSettings, Settings
from ..stages import ingesting, partitioning
from ..stages.exchange import exchange, send
from .figures import GraphFigures


def estimate_graph(
    settings: Settings, *, client: Client | None, events: Events, given: InputObject | None = None
) -> GraphFigures:
    """Estimate the graph of the settings' input. `given` is an input that is not a path.

    The output of the settings is used for files of a frame only, and nothing is left there. Raises the errors of
    `mine`.
    """
    if client is None:
        check_device(settings.cluster)
        check_least_workers(settings.cluster)
    settings = settings.model_copy(update={"programs": ProgramsSettings(run=("coreness",))})
    refuse_overlap(given, settings)
    with staging_for(settings, events.run_id, is_path=given is None) as staging:
        input = RunInput(settings, given, staging, client, events)
        source = input.open()
        call = Call(settings, events, input, staging, None, None)
        cluster = connect(settings.cluster, tell=events.waits) if client is None else nullcontext(client)
        with input.named(), cluster as connected:
            waiting = settings.cluster.waiting_seconds
            session = Session(connected, events.run_id, "estimate", waiting, events.waits)
            with restored(client, session):
                return _estimate(planned(call, source, None, session))


def _estimate(run: RunContext) -> GraphFigures:
    engine, events, plan, settings = run.engine, run.events, run.plan, run.settings
    with events.stage("compile", 0):
        warm_programs(engine, settings, plan.programs.blocks if plan.programs else 1)
    blocks, rows = ingesting.read(engine, events, run.source, plan.blocks, settings.input.nulls, run.space)
    buckets = ingesting.number(engine, events, run.source, blocks, plan.buckets, run.space)
    degrees = partitioning.count_degrees(engine, events, buckets)
    with events.stage("estimate", 3) as stage:
        home = place_blocks(engine, buckets, degrees)
        graph = cut_graph(engine, buckets, home, run.source.directed, "either", False)
        stage.task_done()
        total, draws, closed, closed_by_centre = _sample(engine, graph, settings)
        stage.task_done()
        degeneracy, clique = _innermost(engine, graph, settings)
        stage.task_done()
    transitivity = wedges.share_of(closed, len(draws.wedge), draws.has_all)
    of_centres = wedges.share_of(closed_by_centre, draws.samples if draws.centres else 0)
    triangles = transitivity.times(total.wedges / 3)
    threads = engine.capacity.workers * engine.capacity.kernel_threads
    edges = total.entries // 2
    return GraphFigures(
        rows=rows.rows,
        vertices=total.vertices,
        edges=edges,
        wedges=total.wedges,
        samples=len(draws.wedge),
        seed=draws.seed,
        exact=draws.has_all,
        triangles=triangles,
        transitivity=transitivity,
        average_clustering=of_centres.times(total.centres / max(total.vertices, 1)),
        degeneracy=degeneracy,
        clique=clique,
        lambda_low=max(clique - 2, min(closed + closed_by_centre, 1)),
        lambda_high=max(degeneracy - 1, 0),
        workers=engine.capacity.workers,
        threads=engine.capacity.kernel_threads,
        seconds=None if engine.capacity.device_bytes else predicted_seconds(edges, triangles.likely, threads),
    )


def _sample(engine: Engine, graph: GraphBlocks, settings: Settings) -> tuple[WedgeCounts, Draws, int, int]:
    """The counts of the graph, the sample, and the closed wedges in it by both ways of drawing."""
    groups = len(graph.blocks)
    before = wedges.sums_before(engine.peek(graph.blocks, wedges.count_wedges))
    total = before[-1]
    draws = Draws(settings.estimate.seed, settings.estimate.samples, total.wedges, total.centres)
    own = engine.for_tasks(groups)
    arguments = [(block, graph.home, draws, before[g]) for g, block in enumerate(graph.blocks)]
    sent = send(own, "draw-wedges", "wedges", wedges.draw_wedges, arguments)
    found = exchange(own, "wedges", sent, wedges.count_closed, [(block,) for block in graph.blocks])
    closed = engine.gather(found)
    return total, draws, sum(drawn for drawn, _ in closed), sum(by_centre for _, by_centre in closed)


def _innermost(engine: Engine, graph: GraphBlocks, settings: Settings) -> tuple[int, int]:
    """The degeneracy of the graph, and the size of a clique in its innermost core."""
    states, _ = run_on_blocks(engine, graph, Coreness(), settings)
    degeneracy = max(engine.peek(states, cliques.highest_core))
    vertices = engine.map("core-vertices", cliques.core_vertices, [(own, degeneracy) for own in states])
    (first,) = engine.map("first-core-vertices", cliques.first_vertices, [(vertices,)])
    edges: Sequence[Future] = engine.map("core-edges", cliques.core_edges, [(block, first) for block in graph.blocks])
    (size,) = engine.gather(engine.map("clique", cliques.grow_clique, [(edges,)]))
    return degeneracy, size
