"""A run's DN-graphs get their tracks, from the results that are there already, before it is published."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import asdict
from typing import TYPE_CHECKING

from ...tasks.errors import EdgemillError, InputError, StoreLost
from ...tasks.places import Place
from ..exits import message
from ..manifest import EarlierRecord, Manifest, TracksRecord
from ..result import Result
from ..staging import AnyStaging
from ..telemetry import Events
from .tracks import assign, with_tracks

if TYPE_CHECKING:
    from ..nightly import Night

__all__ = ["follow_groups"]


def follow_groups(staging: AnyStaging, manifest: Manifest, night: Night | None, events: Events) -> Manifest:
    """The manifest of a run whose DN-graphs have tracks now; unchanged if it has no DN-graphs.

    A night takes them over from the night before. If that has none, cannot be read, or has other ids, all tracks are
    new, and the event `tracks_new` says why. Raises StoreLost where a store does not answer: new numbers for all would
    be worse than a night that is repeated. Raises UsageError, OutOfRoom as writing does.
    """
    if manifest.dense is None:
        return manifest
    start, result = time.perf_counter(), Result.unpublished(staging.named_from, manifest)
    earlier = night.previous() if night is not None else None
    before = None if earlier is None else _usable(earlier.place, manifest, events)
    replaced = None
    if night is not None and night.has_result():
        replaced = _usable(night.place, manifest, None)
    first = 1 if night is None else night.series.next_track()
    with events.stage("follow", 0) if before is not None else nullcontext():
        try:
            assigned = assign(result, first, before, replaced)
        except InputError as error:  # what this run has just written is whole, so an earlier result is damaged
            if before is not None and earlier is not None:
                events.emit("tracks_new", before=str(earlier.place), reason=message(error))
            before = None
            assigned = assign(result, first)
        outputs = with_tracks(staging.named_from, manifest, assigned)
    record = None
    if before is not None and earlier is not None:
        record = EarlierRecord(day=earlier.day, path=str(before.place), run=before.manifest.run)
    tracks = TracksRecord(
        previous=record, continued=assigned.continued, again=assigned.again, new=assigned.new, next=assigned.next
    )
    events.emit(
        "followed",
        since=None if record is None else record.day,
        before=None if record is None else record.path,
        seconds=round(time.perf_counter() - start, 3),
        new=assigned.new,
        groups=None if assigned.fates is None else asdict(assigned.fates),
    )
    return manifest.model_copy(update={"outputs": outputs, "tracks": tracks})


def _usable(place: Place, manifest: Manifest, events: Events | None) -> Result | None:
    """The result there, if its tracks can be taken over; the events, if given, say why not."""
    try:
        result = Result(place)
        why = _difference(result.manifest, manifest)
        if not why:
            _ = result.vertices, result.dn_graphs  # damage of their footers is known now
            return result
    except StoreLost:
        raise
    except EdgemillError as error:
        why = message(error)
    if events is not None:
        events.emit("tracks_new", before=str(place), reason=why)
    return None


def _difference(old: Manifest, new: Manifest) -> str:
    if not old.converged:
        return "it did not converge"
    if old.tracks is None:
        return "it was made by a release without tracks"
    if old.input.id_type != new.input.id_type:
        return f"its ids are {old.input.id_type}, and now they are {new.input.id_type}"
    return ""
