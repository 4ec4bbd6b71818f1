"""Where the state of results is, and its reading and writing."""

from __future__ import annotations

from ...tasks.errors import EdgemillError
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.update.order import order_of
from ...tasks.update.state import FOLDER, NoState, State, carry_state, has_state, read_state, write_state
from ..messages.exits import message
from ..monitor.events import Events
from ..output.staging import Staging
from ..results.result import Result
from ..settings.models import Settings
from .reading import edge_column, graph_of_result


def state_place(settings: Settings, place: Folder, run: str) -> Folder:
    """The folder of the state of the result of `run`, whose files are at `place`."""
    own = settings.nightly.state
    if own is None:
        return place.subfolder(FOLDER)
    return folder_at(own, settings.output.storage_options).subfolder(run)


def known_state(settings: Settings, result: Result) -> State:
    """The state of an earlier result. Raises NoState."""
    place = _found(settings, result)
    try:
        return read_state(place, result.manifest.run)
    except EdgemillError as error:
        raise NoState(f"the state in {place} cannot be read: {message(error)}") from error


def _found(settings: Settings, result: Result) -> Folder:
    """The folder of the state of a result. Raises NoState."""
    places = [result.place.subfolder(FOLDER), result.place.subfolder(f"edgemill-{result.manifest.run}/{FOLDER}")]
    if settings.nightly.state is not None:
        places.insert(0, state_place(settings, result.place, result.manifest.run))
    for place in places:
        try:
            if has_state(place):
                return place
        except (EdgemillError, OSError) as error:
            raise NoState(f"the state in {place} cannot be read: {message(error)}") from error
    raise NoState("the earlier result has no state")


def keep_state(settings: Settings, staging: Staging, events: Events, state: State, base: Result | None = None) -> None:
    """Write the state of the result that this run is about to publish.

    In a folder of states those of runs before `base` are removed. That of `base` stays, as this run may still fail.
    """
    place = state_place(settings, staging.tables, events.run_id)
    events.emit("state_written", place=str(place), bytes=write_state(place, events.run_id, state))
    if settings.nightly.state is not None and base is not None:
        states = folder_at(settings.nightly.state, settings.output.storage_options)
        for name in states.names():
            if name not in (events.run_id, base.manifest.run) and has_state(states.subfolder(name)):
                states.remove(name)


def state_of(result: Result) -> State:
    """The state of a result, from its tables. Peels its edges once. Raises InputError for damage."""
    graph = graph_of_result(result)
    return State(graph, order_of(graph.edges, edge_column(result, "lambda")))


def move_state(settings: Settings, base: Result, staging: Staging, events: Events) -> None:
    """Take the files of the state of `base` over to the same result of this run. Raises NoState if there is none."""
    source, target = _found(settings, base), state_place(settings, staging.tables, events.run_id)
    carry_state(source, target, events.run_id)
    events.emit("state_written", place=str(target), bytes=0)
