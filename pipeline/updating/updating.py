"""A result brought up to date from an earlier one, in this process: `update` makes its tables and its manifest."""

from __future__ import annotations

from dataclasses import asdict

from ...tasks.device import MemorySpace
from ...tasks.errors import UsageError
from ...tasks.inputs.sources import Source
from ...tasks.publish.tables import TableColumn
from ...tasks.publish.writing import TableFormat
from ...tasks.update.merging import NumberedGraph
from ...tasks.update.state import State
from ..nightly.track_assignment import Buckets, assign_tracks
from ..output.manifest import Manifest, ProgramRecord
from ..results.result import Result
from ..run.context import Call
from ..stages.extracting import KnownLambda, extract
from .batch_input import BatchInput
from .carrying.state_files import move_state
from .carrying.unchanged import REASON, lineage_to, same_tracks, take_all
from .deciding import Decision, decide, is_large, with_samples
from .eligibility import NotUsable, earlier_result, obstacle
from .finding_lambda import FoundLambda, find_lambda
from .reading import edge_column
from .result_manifest import Made, Outcome, manifest_of
from .start import Start, start_from
from .state import keep_state, state_of
from .tables import Earlier, OneBucket, publish_tables
from .threads import ThreadedEngine

NOTHING = Decision("changes", REASON)


def update(call: Call, source: Source, batch: BatchInput | None, has_client: bool) -> Manifest | None:
    """Write the tables of the result from those of an earlier one; None if the full run is to go on.

    `source` is the input, which `batch` has made if there is one; `has_client`: the caller gave a cluster. The event
    `update_planned` says from which result and how, or why not. Raises InputError for damage of the earlier result, and
    UsageError if `nightly.incremental` is `always` and something is in the way.
    """
    settings, events = call.settings, call.events
    why: str | None
    try:
        base = earlier_result(settings, call.night) if batch is None else batch.base
        why = None if base is None else obstacle(settings, base, source, has_client)
    except NotUsable as error:
        base, why = None, str(error)
    if base is None or why is not None:
        if settings.nightly.incremental == "always" and batch is None:
            raise UsageError(f"nightly.incremental is always, but {why or 'there is no earlier result'}")
        if why is not None:
            events.emit("update_planned", base=None if base is None else str(base.place), way="run", reason=why)
        return None
    engine = ThreadedEngine(events.run_id, settings.cluster.threads_per_worker)
    start = start_from(settings, events, engine, base, source, batch)
    return _nothing_changed(call, source, start) or _changed(call, engine, source, start)


def keep_state_of(call: Call, manifest: Manifest) -> None:
    """Write the state of a result that a full run has made, if the next night is to start from it."""
    nightly = call.settings.nightly
    if (nightly.incremental == "never" and nightly.previous is None) or not manifest.exact:
        return
    if len(manifest.partitions) > 1 or manifest.bounding.shards is not None:
        return
    with call.events.stage("state", 0):
        made = Result.unpublished(call.staging.named_from, manifest)
        keep_state(call.settings, call.staging, call.events, state_of(made))


def _nothing_changed(call: Call, source: Source, start: Start) -> Manifest | None:
    """The manifest with all files of the earlier result, if it is still right in every row."""
    base = start.base
    tracks = same_tracks(base, lineage_to(call, source, base))
    if not start.change.is_empty or start.order is None or tracks is None or _written_otherwise(call, base):
        return None
    if base.manifest.input.vertices is not None:  # this run has no attributes, and the files to take over have
        return None
    went = Outcome(start.change, start.rows, start.repeated, NOTHING, 0, 0)
    _tell(call, went, base)
    with call.events.stage("publish", 0):
        files = take_all(base, call.staging.tables)
        move_state(call.settings, base, call.staging, call.events)
    assert base.manifest.dense is not None  # checked with the other obstacles
    made = Made(files, len(files), None, base.manifest.dense, tracks)
    return manifest_of(call, source, base, made, went, base.manifest.programs)


def _changed(call: Call, engine: ThreadedEngine, source: Source, start: Start) -> Manifest:
    events, base, change = call.events, start.base, start.change
    always = call.settings.nightly.incremental == "always"
    support = edge_column(base, "support")
    decision = start.whole or decide(change, base, support, always, engine.threads)
    if is_large(change):
        with events.stage("estimate", 0):
            decision = with_samples(decision, change, start.order, engine.threads)
    _tell(call, Outcome(change, start.rows, start.repeated, decision, None, 0), base)
    found = find_lambda(events, start, support, decision, engine.threads)
    graph = change.final(found.edges)
    one = OneBucket.of(graph, found.support, found.order.lam)
    known = KnownLambda(one.buckets.edges, [one.degrees], [one.results], one.buckets.starts)
    groups = extract(engine, events, known, 1, MemorySpace.HOST)
    columns, programs = _run_programs(call, engine, source, start, graph, one)
    how = _format(call, source)
    with events.stage("publish", 0):
        buckets = Buckets(one.buckets.ids, groups.found, one.buckets.starts, groups.highest, source.id_type)
        tracked = assign_tracks(engine, events, buckets, lineage_to(call, source, base))
        (own,), (triangles,), (tracks,) = groups.found, groups.triangles, tracked.tracks
        published, kept = publish_tables(
            engine, one, own, triangles, tracks, how, _earlier(call, start, found), columns
        )
        keep_state(call.settings, call.staging, events, State(graph, found.order), base)
    made = Made(published.files, kept, published.summaries[0], groups.record, tracked.record)
    went = Outcome(change, start.rows, start.repeated, found.decision, found.changed, found.triangles)
    return manifest_of(call, source, base, made, went, programs)


def _run_programs(
    call: Call, engine: ThreadedEngine, source: Source, start: Start, graph: NumberedGraph, one: OneBucket
) -> tuple[list[TableColumn], list[ProgramRecord]]:
    if not call.settings.programs.vertex_programs:
        return [], []
    from ..programs.one_block import Earlier as EarlierPrograms  # loads the kernels of programs
    from ..programs.one_block import run_on_one_block

    earlier = EarlierPrograms(start.base, start.change)
    return run_on_one_block(engine, call.events, call.settings, source, graph, one.buckets, earlier)


def _earlier(call: Call, start: Start, found: FoundLambda) -> Earlier:
    change, edges = start.change, found.edges
    return Earlier(
        start.base,
        lambda rows: change.edges_before(edges, rows),
        change.vertices_before,
        None if _written_otherwise(call, start.base) else found.touched,
        change.touched_vertices(edges, found.touched),
    )


def _written_otherwise(call: Call, base: Result) -> bool:
    """Whether files of the earlier result differ in form or values of programs from those that this run writes."""
    then, now = base.manifest.settings.get("output", {}), call.settings.output
    if (then.get("compression"), then.get("row_group_rows")) != (now.compression, now.row_group_rows):
        return True
    names, ran = call.settings.programs.vertex_programs, {own.name: own.parameters for own in base.manifest.programs}
    if not names or set(names) != set(ran):
        return bool(names or ran)
    if base.manifest.input.directed or not all(own.converged for own in base.manifest.programs):
        return True
    from ..programs.making import parameters_of  # loads the kernels of programs

    return any(parameters_of(name, call.settings) != ran[name] for name in names)


def _format(call: Call, source: Source) -> TableFormat:
    output = call.settings.output
    return TableFormat(call.staging.tables, source, True, output.compression, output.row_group_rows)


def _tell(call: Call, went: Outcome, base: Result) -> None:
    change = went.change
    call.events.emit(
        "update_planned",
        base=str(base.place),
        way=went.decision.way,
        reason=went.decision.reason,
        expected=went.decision.expected,
        inserted=change.added.edges,
        deleted=change.lost,
        vertices_new=change.came,
        vertices_gone=change.gone,
        repeated=went.repeated,
        **asdict(change.counts),
    )
