"""A result brought up to date from an earlier one, in this process: `update` makes its tables and its manifest."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ...tasks.inputs.sources import Source
from ...tasks.publish.tables import TableColumn
from ...tasks.publish.writing import OutputFile, TableOptions
from ...tasks.update.arcs import EdgeArcs
from ...tasks.update.merging import NumberedGraph
from ...tasks.update.order import Order
from ...tasks.update.state import State
from ..nightly.track_assignment import GroupBuckets, TrackedPrograms, assign_tracks, track_programs
from ..opening.context import Call
from ..opening.reading import edge_column
from ..output.manifest import Manifest, ProgramRecord
from ..results.result import Result
from ..stages.task_engine import ThreadedEngine
from .beginning import Begun, Start, keep_state, state_of, tell, written_otherwise
from .deciding import Decision, decide, is_large, with_samples
from .finding_lambda import FoundLambda, SavedLambda, find_lambda
from .groups import EarlierTables, find_groups, vertex_values
from .result_manifest import UpdateFiles, UpdateOutcome, manifest_of
from .tables import EarlierFiles, OneBucket, publish_edges, publish_tables
from .unchanged import lineage_to

if TYPE_CHECKING:
    from ..programs.one_block import GroupTables


def update(call: Call, source: Source, begun: Begun) -> Manifest:
    """Write the tables of the result from those of an earlier result and the changes since.

    The event `update_planned` says from which result and how. Raises InputError for damage of the earlier result.
    """
    saved = SavedLambda(call, source, begun.engine, begun.start)
    support = edge_column(begun.start.base, "support")
    tables = EarlierTables.of(begun.start)
    with saved.noted():
        found = saved.load()
        if found is None:
            found = _search(call, begun, support)
            saved.save_if_due(found)
        else:
            _tell(call, begun.start, found.decision)
        return _publish(call, source, begun, support, tables, found)


def _search(call: Call, begun: Begun, support: NDArray[np.int32]) -> FoundLambda:
    engine, start, events = begun.engine, begun.start, call.events
    decision = start.whole or decide(start.change, start.base, support, call.settings.nightly.incremental == "always")
    if is_large(start.change):
        with events.stage("estimate", 0):
            decision = with_samples(decision, start.change, start.order, engine.threads)
    _tell(call, start, decision)
    return find_lambda(events, start, support, decision, engine.threads)


def _tell(call: Call, start: Start, decision: Decision) -> None:
    tell(call, UpdateOutcome(start.change, start.rows, start.repeated, decision, None, 0), start.base)


def _publish(
    call: Call,
    source: Source,
    begun: Begun,
    support: NDArray[np.int32],
    tables: EarlierTables | None,
    found: FoundLambda,
) -> Manifest:
    engine, start = begun.engine, begun.start
    events, base, change = call.events, start.base, start.change
    graph = change.final(found.edges)
    one = OneBucket.of(graph, found.support, found.order.lam)
    how, earlier = _format(call, source), _earlier(call, start, found)
    with ThreadPoolExecutor(1) as beside:
        edges = beside.submit(publish_edges, engine, one, how, earlier)
        groups, forest = find_groups(engine, events, engine.threads, start, tables, found, graph)
        columns, tables_of_groups, programs = _run_programs(call, engine, source, start, graph, one)
        state = State(graph, found.order, forest, _arcs(source, start))
        kept_state = beside.submit(keep_state, call.settings, call.staging, events, state, base)
        with events.stage("publish", 0):
            ids = one.buckets.ids
            buckets = GroupBuckets.of_dn_graphs(ids, groups.found, one.buckets.starts, groups.highest, source.id_type)
            tracked = assign_tracks(engine, events, buckets, lineage_to(call, source, base))
            lineage = partial(lineage_to, call, source, base)
            own_tables = ids, source.id_type, tables_of_groups, programs
            of_programs = track_programs(engine, events, call.settings, *own_tables, lineage)
            (own,), (triangles,), (tracks,) = groups.found, groups.triangles, tracked.tracks
            values = vertex_values(start, tables, found, one, support, engine.threads)
            published, kept = publish_tables(
                engine, one, own, triangles, tracks, values, how, earlier, edges.result(), columns
            )
            files = [*published.files, *_write_groups(engine, tables_of_groups, of_programs, how)]
            kept_state.result()
    made = UpdateFiles(files, kept, published.summaries[0], groups.record, tracked.record)
    went = UpdateOutcome(change, start.rows, start.repeated, found.decision, found.changed, found.triangles)
    return manifest_of(call, source, base, made, went, of_programs.records)


def _run_programs(
    call: Call, engine: ThreadedEngine, source: Source, start: Start, graph: NumberedGraph, one: OneBucket
) -> tuple[list[TableColumn], GroupTables, list[ProgramRecord]]:
    if not call.settings.programs.vertex_programs:
        return [], {}, []
    from ..programs.one_block import EarlierPrograms, run_on_one_block  # loads the kernels of programs

    earlier = EarlierPrograms(start.base, start.change)
    assert start.arcs is not None or not (source.directed or source.weights is not None)
    buckets = one.buckets if start.arcs is None else replace(one.buckets, edges=start.arcs.edges)
    return run_on_one_block(engine, call.events, call.settings, source, graph.ids, buckets, one.degrees, earlier)


def _write_groups(
    engine: ThreadedEngine, tables: GroupTables, tracked: TrackedPrograms, how: TableOptions
) -> list[OutputFile]:
    if not tables:
        return []
    from ..programs.results import publish_groups

    return publish_groups(engine, tables, tracked.tracks, how)


def _arcs(source: Source, start: Start) -> EdgeArcs | None:
    return None if start.arcs is None else EdgeArcs.of(start.arcs.edges, source.directed, source.weights is not None)


def _earlier(call: Call, start: Start, found: FoundLambda) -> EarlierFiles:
    change, edges = start.change, found.edges
    return EarlierFiles(
        start.base,
        lambda rows: change.edges_before(edges, rows),
        change.vertices_before,
        None if written_otherwise(call, start.base) else found.touched,
        change.touched_vertices(edges, found.touched),
    )


def _format(call: Call, source: Source) -> TableOptions:
    output = call.settings.output
    return TableOptions(call.staging.tables, source, True, output.compression, output.row_group_rows)


def keep_state_of(call: Call, manifest: Manifest, order: Order | None, arcs: EdgeArcs | None) -> None:
    """Write the state of a result that a full run has made, unless it is not exact or has several partitions.

    `order` is the order of its peeling, if that was recorded, and `arcs` the directions and weights of its edges, if
    programs have read some.
    """
    if not manifest.exact or len(manifest.partitions) > 1 or manifest.bounding.shards is not None:
        return
    with call.events.stage("state", 0):
        made = Result.unpublished(call.staging.named_from, manifest)
        keep_state(call.settings, call.staging, call.events, replace(state_of(made, order), arcs=arcs))
