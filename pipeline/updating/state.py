"""Where the state of results is, and its reading and writing."""

from __future__ import annotations

import pyarrow as pa

from ...tasks.errors import EdgemillError
from ...tasks.storage.folders import folder_at
from ...tasks.update.order import Order
from ...tasks.update.state import State, read_state, write_state
from ...tasks.update.state_index import NoState, has_state, is_unfinished
from ..messages.exits import message
from ..monitor.events import Events
from ..output.staging import Staging
from ..results.result import Result
from ..settings.models import Settings
from .carrying.state_files import state_found, state_place
from .reading import edge_column, graph_of_result


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

    In a folder of states those of runs before `base` are removed. That of `base` stays, as this run may still fail.
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
