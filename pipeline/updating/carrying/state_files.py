"""Where the state of results is, and its files as they are."""

from __future__ import annotations

from ....tasks.errors import EdgemillError
from ....tasks.storage.folders import Folder, folder_at
from ....tasks.update.state_index import FOLDER, NoState, carry_state, has_state
from ...messages.exits import message
from ...monitor.events import Events
from ...output.staging import Staging
from ...results.result import Result
from ...settings.models import Settings


def state_place(settings: Settings, place: Folder, run: str) -> Folder:
    """The folder of the state of the result of `run`, whose files are at `place`."""
    own = settings.nightly.state
    if own is None:
        return place.subfolder(FOLDER)
    return folder_at(own, settings.output.storage_options).subfolder(run)


def state_found(settings: Settings, result: Result) -> Folder:
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


def move_state(settings: Settings, base: Result, staging: Staging, events: Events) -> None:
    """Take the files of the state of `base` over to the same result of this run. Raises NoState if there is none."""
    source, target = state_found(settings, base), state_place(settings, staging.tables, events.run_id)
    carry_state(source, target, events.run_id)
    events.emit("state_written", place=str(target), bytes=0)
