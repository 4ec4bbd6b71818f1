"""How an update begins: the earlier result with its state, and the change since. Loads no kernels.

If nothing has changed, the result of today is complete after this step. `batch_for` checks that an earlier result keeps
all that a batch of changes needs.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from importlib import import_module

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.inputs.sources import Source
from ...tasks.storage.folders import folder_at
from ...tasks.update.arcs import EdgeArcs
from ...tasks.update.merging import Change, compare
from ...tasks.update.order import Order
from ...tasks.update.state import State, read_state, write_state
from ...tasks.update.state_index import NoState, has_state, is_unfinished
from ..events import Events
from ..inputs.input_object import InputObject
from ..messages.exits import message
from ..nightly.night import refuse_few_edges
from ..opening.batch import BatchInput
from ..opening.context import Call
from ..opening.reading import edge_column, graph_of_result, read_graph
from ..output.staging import Staging
from ..results.result import Result
from ..settings.models import Settings
from ..stages.ingesting import Buckets, RowCounts
from ..stages.task_engine import ThreadedEngine
from .deciding import Decision
from .eligibility import NotUsable, earlier_result, obstacle
from .result_manifest import UpdateFiles, UpdateOutcome, manifest_of, nights_since
from .unchanged import (
    REASON,
    Unchanged,
    lineage_to,
    move_state,
    programs_with_same_tracks,
    same_tracks,
    state_found,
    state_place,
    take_all,
)

NOTHING = Decision("changes", REASON)


@dataclass(frozen=True)
class Begun:
    """An update that has begun, because something has changed."""

    engine: ThreadedEngine
    start: Start


def begin(call: Call, source: Source, batch: BatchInput | None, has_client: bool) -> Begun | Unchanged | None:
    """Begin an update. Returns Unchanged, with all files of the earlier result, if nothing has changed; else Begun.
    Returns None if a full run is to follow.

    `source` is the input; if there is a `batch`, it has made the input. `has_client` tells whether the caller gave a
    cluster. The event `update_planned` says why a full run is to follow, or that nothing has changed. Raises InputError
    for damage of the earlier result, and UsageError if `nightly.incremental` is `always` and there is no earlier result
    that can be used.
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
    """The result with all files of the earlier result; None if a row may differ."""
    base = start.base
    tracks = same_tracks(base, lineage_to(call, source, base))
    if not start.change.is_empty or start.order is None or tracks is None or written_otherwise(call, base):
        return None
    programs = programs_with_same_tracks(call, source, base)
    if programs is None:
        return None
    if base.manifest.input.vertices is not None:  # this run has no attributes, and the files to take over have
        return None
    went = UpdateOutcome(start.change, start.rows, start.repeated, NOTHING, 0, 0)
    tell(call, went, base)
    with call.events.stage("publish", 0):
        files = take_all(base, call.staging.tables)
        move_state(call.settings, base, call.staging, call.events)
    assert base.manifest.dense is not None  # checked with the other obstacles
    made = UpdateFiles(files, len(files), None, base.manifest.dense, tracks)
    return Unchanged(manifest_of(call, source, base, made, went, programs), base)


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
        return True  # directions and weights may have changed though no edge has
    if not all(own.converged for own in base.manifest.programs):
        return True
    return any(
        (settings.parameters_of(name), own.place if own.is_own else None, own.sha256) != ran[name]
        for name, own in settings.requested_programs.items()
    )


def tell(call: Call, went: UpdateOutcome, base: Result) -> None:
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


@dataclass(frozen=True)
class Start:
    """What is known before λ is found."""

    base: Result
    change: Change
    order: Order | None
    """The order of the earlier result; None if λ is to be found from nothing."""
    forest: NDArray[np.int32] | None
    """The forest of the earlier result, as in `State`; None if `order` is None."""
    whole: Decision | None
    """Why λ is found from nothing; None if that is not decided yet."""
    rows: RowCounts
    repeated: int
    arcs: Buckets | None = None
    """The edges of today with their directions and weights, for vertex programs; None if these need none."""


def _known_state(settings: Settings, base: Result, with_kernels: bool) -> State:
    """The state of the earlier result. With `with_kernels` a thread imports Numba and the kernels of updates meanwhile;
    a batch without changes does not need them. Raises NoState.
    """
    with ThreadPoolExecutor(1) as beside:
        if with_kernels:
            beside.submit(import_module, "...tasks.update.warm", __package__)
        return known_state(settings, base)


def start_from(
    settings: Settings,
    events: Events,
    engine: ThreadedEngine,
    base: Result,
    source: Source,
    batch: BatchInput | None,
) -> Start:
    """Read the earlier result, and what changed since. Raises InputError for damage, and as `read_graph` does."""
    order, forest, whole = None, None, None
    every = settings.nightly.full_every
    due = settings.nightly.incremental != "always" and nights_since(base) + 1 >= every
    with events.stage("load", 0):
        try:
            if due:
                whole = Decision("whole", f"a full run is due: nightly.full_every is {every:,}")
                graph = graph_of_result(base)
            else:
                known = None if batch is None else batch.state
                state = known or _known_state(settings, base, with_kernels=batch is None)
                graph, order, forest = state.graph, state.order, state.forest
        except NoState as why:
            whole = Decision("whole", str(why))
            graph = graph_of_result(base)
    if batch is None or batch.counts is not None:
        own, needs_arcs = settings.input, bool(settings.programs.vertex_programs)
        today = read_graph(engine, events, source, settings.ingest, own.nulls, needs_arcs)
        with events.stage("compare", 0):
            change = compare(graph, today.graph)
        rows, repeated = today.rows, 0
        if batch is not None and batch.counts is not None and batch.batch is not None:
            change, repeated = replace(change, counts=batch.counts), batch.batch.repeated
            rows = replace(rows, nulls=batch.batch.inserted.rows.nulls)
        return Start(base, change, order, forest, whole, rows, repeated, today.arcs)
    assert batch.batch is not None  # the run has opened its input
    with events.stage("compare", 0):
        change = batch.change(graph)
    new, rows = batch.batch.inserted, batch.batch.inserted.rows
    present = new.graph.edges.edges - change.added.edges
    kept = change.before.edges - change.lost
    rows = replace(rows, rows=rows.rows + kept, duplicates=rows.duplicates + present, notes=())  # the source has notes
    return Start(base, change, order, forest, whole, rows, batch.batch.repeated)


def known_state(settings: Settings, result: Result) -> State:
    """The state of an earlier result. Raises NoState."""
    place, then = state_found(settings, result), result.manifest
    try:
        state = read_state(place, then.run)
    except EdgemillError as error:
        raise NoState(f"the state in {place} cannot be read: {message(error)}") from error
    ids, edges = state.graph.ids, state.graph.edges.edges
    if (len(ids), edges, int(state.order.lam.max(initial=0))) != (
        then.counts.vertices,
        then.counts.edges,
        then.lam.max,
    ):
        raise NoState(f"the state in {place} is not used: it is of another graph than the result")
    if isinstance(ids, pa.Array) == then.input.id_type.startswith(("int", "uint")):
        raise NoState(f"the state in {place} is not used: its ids are of another type than those of the result")
    return state


def keep_state(settings: Settings, staging: Staging, events: Events, state: State, base: Result | None = None) -> None:
    """Write the state of the result that this run is about to publish.

    In a folder of states, the states of earlier runs are removed, except that of `base`, as this run may still fail.
    """
    place = state_place(settings, staging.tables, events.run_id)
    events.emit("state_written", place=str(place), bytes=write_state(place, events.run_id, state))
    if settings.nightly.state is not None and base is not None:
        states = folder_at(settings.nightly.state, settings.output.storage_options)
        for name in states.names():
            place = states.subfolder(name)
            if name not in (events.run_id, base.manifest.run) and (has_state(place) or is_unfinished(place)):
                states.remove(name)


def state_of(result: Result, order: Order | None) -> State:
    """The state of a result, from its tables. Peels its edges once unless the `order` of its peeling is known.

    Raises InputError for damage.
    """
    graph = graph_of_result(result)
    return State.of(graph, edge_column(result, "lambda")) if order is None else State.in_order(graph, order)


def refuse_unclear(base: Result) -> None:
    """Raise UsageError if a result does not keep what every update by a batch needs."""
    if not base.manifest.has_lambda:
        raise UsageError(_lacks(base, "its edges, as it was made without λ"))
    if base.manifest.input.two_sided:
        raise UsageError(
            f"λ of {base.place} counts butterflies, which a batch of changes does not bring up to date: run the whole "
            "new input instead, with --two-sided"
        )
    if base.manifest.input.bipartite == "refuse":
        raise UsageError(_lacks(base, "the columns in which its ids were, which input.bipartite=refuse compares"))


def state_for_programs(settings: Settings, base: Result) -> State | None:
    """The state of a result with the directions and weights of its edges; None if the programs read neither.

    Raises UsageError if there is no such state.
    """
    programs, own = settings.programs.vertex_programs, settings.input
    if not programs or not (own.directed or own.weight_column is not None):
        return None
    needs = {"directions": own.directed, "weights": own.weight_column is not None}
    try:
        state = known_state(settings, base)
        has = state.arcs or EdgeArcs(None, None)
        if base.manifest.input.bipartite is None and needs == {
            "directions": has.ways is not None,
            "weights": has.weight is not None,
        }:
            return state
        why = "its state does not have them"
    except NoState as error:
        why = str(error)
    what = " and ".join(name for name, is_needed in needs.items() if is_needed)
    raise UsageError(_lacks(base, f"the {what} of its edges, which {', '.join(programs)} may need", f" ({why})"))


def batch_for(settings: Settings, base: Result, insert: InputObject | None, delete: InputObject | None) -> BatchInput:
    """A batch of changes of `base` as the input of a run with these settings. Raises UsageError as `state_for_programs`
    does.
    """
    state = state_for_programs(settings, base)
    if state is None or settings.input.weight_column is None:
        return BatchInput(base, insert, delete, state)
    from ..programs.making import refuses_negative_weights  # imports kernels

    return BatchInput(base, insert, delete, state, refuses_negative_weights(settings))


def _lacks(base: Result, what: str, why: str = "") -> str:
    return f"{base.place} does not keep {what}: run the whole new input instead, with --previous {base.place}{why}"
