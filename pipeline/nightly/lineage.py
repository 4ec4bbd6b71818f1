"""The earlier results from which a run continues tracks."""

from __future__ import annotations

from dataclasses import dataclass

import pyarrow as pa

from ...tasks.errors import EdgemillError, StoreLost
from ...tasks.ids.display import are_same, type_name
from ...tasks.storage.folders import Folder
from ..messages.exits import message
from ..monitor.events import Events
from ..output.manifest import EarlierRecord
from ..results.result import Result
from .night import Night, PreviousResult


@dataclass(frozen=True)
class Lineage:
    """The earlier results from which a run continues tracks."""

    first: int = 1
    """The first unused track."""
    before: Result | None = None
    """The result of the previous night, if its tracks can be continued."""
    day: str = ""
    """Day of `before`."""
    replaced: Result | None = None
    """The result of the same night that this run replaces, if its tracks can be continued."""
    refused: EarlierRecord | None = None
    """The result of the previous night if its tracks cannot be continued."""


def lineage_of(night: Night | None, id_type: pa.DataType, events: Events) -> Lineage:
    """The earlier results from which a run with ids of this type can continue tracks.

    If the result of the previous night cannot be read or has other ids, the event `tracks_new` says why. Raises
    StoreLost if a store does not answer: repeating the run is better than new tracks for all DN-graphs.
    """
    if night is None:
        return Lineage()
    earlier, ids = night.previous(), type_name(id_type)
    before = None if earlier is None else _usable(earlier.place, ids, events)
    return Lineage(
        night.series.next_track(),
        before,
        "" if earlier is None else earlier.day,
        _usable(night.place, ids, None) if night.has_result() else None,
        _refused(earlier) if earlier is not None and before is None else None,
    )


def lineage_from(place: Folder, id_type: pa.DataType, events: Events) -> Lineage:
    """As `lineage_of`, for a result outside of a series that starts from the result in `place`."""
    before = _usable(place, type_name(id_type), events)
    if before is None or before.manifest.tracks is None:
        return Lineage(refused=_refused(PreviousResult("", place)))
    day = str(before.manifest.settings.get("nightly", {}).get("date") or "")
    return Lineage(before.manifest.tracks.next, before, day)


def _refused(earlier: PreviousResult) -> EarlierRecord:
    return EarlierRecord(day=earlier.day, path=str(earlier.place), run=earlier.run)


def _usable(place: Folder, id_type: str, events: Events | None) -> Result | None:
    """The result in the folder, if its tracks can be continued; else None, and the event `tracks_new` says why."""
    try:
        result = Result(place)
        why = _difference(result, id_type)
        if not why:
            _ = result.vertices, result.dn_graphs  # finds damaged footers now
            return result
    except StoreLost:
        raise
    except EdgemillError as error:
        why = message(error)
    if events is not None:
        events.emit("tracks_new", before=str(place), reason=why)
    return None


def _difference(old: Result, id_type: str) -> str:
    manifest = old.manifest
    if not manifest.exact:
        return "it did not converge" if manifest.has_lambda else "it has no λ"
    if manifest.tracks is None:
        return "it was made by a release without tracks"
    if not are_same(manifest.input.id_type, id_type):
        return f"its ids are {manifest.input.id_type}, but the ids of this run are {id_type}"
    return ""
