"""How an update begins: the change since the earlier result, and the result if there is none. Loads no kernels."""

from __future__ import annotations

from dataclasses import asdict, dataclass

from ....tasks.errors import UsageError
from ....tasks.inputs.sources import Source
from ...nightly.night import refuse_few_edges
from ...results.result import Result
from ...run.context import Call
from ...stages.task_engine import ThreadedEngine
from ..batches.batch_input import BatchInput
from ..eligibility import NotUsable, earlier_result, obstacle
from ..result_manifest import Made, Outcome, manifest_of
from ..search.deciding import Decision
from ..start import Start, start_from
from .state_files import move_state
from .unchanged import REASON, Unchanged, lineage_to, same_tracks, take_all

NOTHING = Decision("changes", REASON)


@dataclass(frozen=True)
class Begun:
    """An update of a result that something has changed in."""

    engine: ThreadedEngine
    start: Start


def begin(call: Call, source: Source, batch: BatchInput | None, has_client: bool) -> Begun | Unchanged | None:
    """The result with all files of the earlier one, if nothing has changed; else what has. None if the full run is to
    go on.

    `source` is the input, which `batch` has made if there is one; `has_client`: the caller gave a cluster. The event
    `update_planned` says why the full run is to go on, or that nothing has changed. Raises InputError for damage of the
    earlier result, and UsageError if `nightly.incremental` is `always` and something is in the way.
    """
    settings, events = call.settings, call.events
    why: str | None
    try:
        base = earlier_result(settings, call.night) if batch is None else batch.base
        call.reads(base)
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
    change = start.change
    refuse_few_edges(call.before, settings.nightly, change.before.edges - change.lost + change.added.edges)
    return _nothing_changed(call, source, start) or Begun(engine, start)


def _nothing_changed(call: Call, source: Source, start: Start) -> Unchanged | None:
    """The result with all files of the earlier result, if it is still right in every row."""
    base = start.base
    tracks = same_tracks(base, lineage_to(call, source, base))
    if not start.change.is_empty or start.order is None or tracks is None or written_otherwise(call, base):
        return None
    if base.manifest.input.vertices is not None:  # this run has no attributes, and the files to take over have
        return None
    went = Outcome(start.change, start.rows, start.repeated, NOTHING, 0, 0)
    tell(call, went, base)
    with call.events.stage("publish", 0):
        files = take_all(base, call.staging.tables)
        move_state(call.settings, base, call.staging, call.events)
    assert base.manifest.dense is not None  # checked with the other obstacles
    made = Made(files, len(files), None, base.manifest.dense, tracks)
    return Unchanged(manifest_of(call, source, base, made, went, base.manifest.programs), base)


def written_otherwise(call: Call, base: Result) -> bool:
    """Whether files of the earlier result differ in form or values of programs from those that this run writes."""
    then, now = base.manifest.settings.get("output", {}), call.settings.output
    if (then.get("compression"), then.get("row_group_rows")) != (now.compression, now.row_group_rows):
        return True
    settings, names = call.settings, call.settings.programs.vertex_programs
    ran = {own.name: (own.parameters, own.source, own.sha256) for own in base.manifest.programs}
    if not names or set(names) != set(ran):
        return bool(names or ran)
    read, reads = base.manifest.input, call.settings.input
    if read.directed or reads.directed or read.weights is not None or reads.weight_column is not None:
        return True  # directions and weights may have changed where no edge has
    if not all(own.converged for own in base.manifest.programs):
        return True
    return any(
        (settings.parameters_of(name), own.place if own.is_own else None, own.sha256) != ran[name]
        for name, own in settings.requested_programs.items()
    )


def tell(call: Call, went: Outcome, base: Result) -> None:
    """Emit what changed, and how λ is found."""
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
