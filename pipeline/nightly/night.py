"""One night of a series: the earlier results that a run starts from, and the steps after a successful run.

`Lineage` holds the earlier results from which a run continues tracks.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError, StoreLost, UsageError
from ...tasks.ids.display import are_same, type_name
from ...tasks.inputs.sources import Measure
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.pointer import pointer_target, refuse_non_pointer, set_pointer
from ..events import Events
from ..messages.exits import message
from ..output.manifest import EarlierRecord, Manifest, TracksRecord, is_result
from ..results.result import Result
from ..results.series import PreviousResult, Series, night_before
from ..settings.declared_programs import LAMBDA
from ..settings.models import NightlySettings, Settings

_TRIES = 5
"""Attempts to move the pointer; one fails if another run finishes a newer night at the same time."""


@dataclass(frozen=True)
class Night:
    """One night of a series."""

    day: str
    series: Series
    settings: NightlySettings

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The night of these settings; None if the output path has no `{date}`.

        Raises UsageError if the path of the pointer holds something else, or if the paths of other nights cannot be
        derived from the output path.
        """
        nightly, out = settings.nightly, folder_at(settings.output.path, settings.output.storage_options)
        if nightly.series is None or nightly.date is None:
            return None
        series = Series.around(out, nightly.series, nightly.date)
        if series is None or not series.at(nightly.date).is_same(out) or not _is_plain(out):
            raise UsageError(
                f"output.path {without_passwords(nightly.series)}: results of other nights cannot be located by it: "
                "write it without .. and without empty names"
            )
        if nightly.latest:
            refuse_non_pointer(series.at("latest"))
        return cls(nightly.date, series, nightly)

    def before(self) -> PreviousResult | None:
        """The newest exact result of an earlier day; None if there is none or `nightly.compare` is false."""
        return self.previous() if self.settings.compare else None

    def previous(self) -> PreviousResult | None:
        """The newest exact result of an earlier day. Raises UsageError if the results cannot be listed."""
        return night_before(self.series, self.day)

    @property
    def place(self) -> Folder:
        """The folder of the result of this night."""
        return self.series.at(self.day)

    def has_result(self) -> bool:
        """Whether this night has a result."""
        return is_result(self.place)

    def succeeded(self, events: Events) -> None:
        """Move `latest`, then remove old results. Idempotent.

        The event `next_outdated` names the next night if it does not follow the result of this one. Raises UsageError
        if the pointer cannot be moved.
        """
        self.move_latest(events)
        self._look_at_next(events)
        if self.settings.keep is not None:
            from .retention import keep_newest

            keep_newest(self.series, self.settings.keep, self.day, events)

    def move_latest(self, events: Events) -> None:
        """Move `latest` to the newest exact result, if `nightly.latest` is true."""
        if not self.settings.latest:
            return
        pointer, moved = self.series.at("latest"), False
        for _ in range(_TRIES):  # checked again after a move, so that the newer of two concurrent nights wins
            newest, now = self.series.newest(), pointer_target(pointer)
            place = None if newest is None else self.series.at(newest)
            if place is None or (now is not None and now.url == place.url):
                break
            set_pointer(pointer, place)
            moved = True
            events.emit("latest_moved", pointer=str(pointer), result=str(place), day=newest)
        if newest is not None and newest != self.day and not moved:
            reason = (
                "a newer night"
                if newest > self.day
                else f"the newest night whose result is exact, as {self.day} is not"
            )
            events.emit("latest_kept", pointer=str(pointer), day=newest, reason=reason)

    def latest_day(self) -> str | None:
        """The day that `latest` points to; None if there is no pointer, or `nightly.latest` is false."""
        target = pointer_target(self.series.at("latest")) if self.settings.latest else None
        days = () if target is None else self.series.days()
        return next((day for day in days if target is not None and self.series.at(day).is_same(target)), None)

    def _look_at_next(self, events: Events) -> None:
        own = PreviousResult(self.day, self.place)
        with suppress(EdgemillError):  # it is advice
            later = min((day for day in self.series.results() if day > self.day), default=None)
            if later is None:
                return
            after = PreviousResult(later, self.series.at(later))
            manifest = after.manifest()
            if manifest is not None and not follows(manifest, own, own.run):
                events.emit("next_outdated", day=later, result=str(after.place))


def result_before(settings: Settings, night: Night | None) -> PreviousResult | None:
    """The result whose tracks a run with these settings continues: that of the night before, or without a series the
    one that `nightly.previous` names. None if there is none, or it cannot be opened.

    Raises UsageError if the results of the series cannot be listed, StoreLost.
    """
    if night is not None:
        return night.previous()
    if settings.nightly.previous is None:
        return None
    place = folder_at(settings.nightly.previous, settings.output.storage_options)
    return PreviousResult("", place) if is_result(place) else None


def follows(manifest: Manifest, before: PreviousResult, run: str) -> bool:
    """Whether a result follows the result `before` of that `run`, as far as its tracks and the changes that it reports
    depend on it.

    An earlier day than the one that it follows is no reason to make it again: the latter was removed since. Nor is
    anything for a result without tracks.
    """
    return stale_tracks(manifest, before, run) is None


def stale_tracks(manifest: Manifest, before: PreviousResult, run: str) -> TracksRecord | None:
    """The first tracks of a result, of DN-graphs or of a program, that do not follow, as `follows` says."""
    for tracks in manifest.every_tracks:
        then = tracks.previous or tracks.refused
        if then is None or not (then.run == run or (before.day and then.day > before.day)):
            return tracks
    return None


def refuse_other_ids(before: PreviousResult | None, settings: NightlySettings, id_type: str, measure: Measure) -> None:
    """Raises InputError if ids have another type than in the night before, or if λ counts something else, unless
    `nightly.least_share` is null.
    """
    if before is None or settings.least_share is None or (manifest := before.manifest()) is None:
        return
    if manifest.measure != measure:
        raise InputError(
            f"λ counts {measure}, and that of {before} counts {manifest.measure}, so that no group keeps its track: "
            "nothing is published; give the new kind of result a series of its own, or accept it with "
            "nightly.least_share=null"
        )
    if not are_same(manifest.input.id_type, id_type):
        raise InputError(
            f"ids are {id_type}, and those of {before} are {manifest.input.id_type}, so that no group keeps its track: "
            "nothing is published; if the input is right, accept it with nightly.least_share=null"
        )


def refuse_few_edges(before: PreviousResult | None, settings: NightlySettings, edges: int) -> None:
    """Raises InputError if there are too few edges, by `nightly.least_share`."""
    if before is None or settings.least_share is None or (manifest := before.manifest()) is None:
        return
    least = math.ceil(settings.least_share * manifest.counts.edges)
    if edges < least:
        raise InputError(
            f"the input has {edges:,} edges, and at least {least:,} are expected after the {manifest.counts.edges:,} "
            f"of {before} (nightly.least_share): nothing is published; if the input is right, accept it with "
            "nightly.least_share=null"
        )


def _is_plain(place: Folder) -> bool:
    """Whether an object store's URL has no empty names, `.` or `..`; always true on a disk."""
    _, mark, path = place.url.partition("://")
    return not mark or not {"", ".", ".."} & {*path.removeprefix("/").split("/")}


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


def lineage_of(night: Night | None, id_type: pa.DataType, events: Events, groups: str = LAMBDA) -> Lineage:
    """The earlier results from which a run with ids of this type can continue tracks of `groups`: DN-graphs, or those
    of a program.

    If the result of the previous night cannot be read or has other ids, the event `tracks_new` says why. Raises
    StoreLost if a store does not answer: repeating the run is better than new tracks for all groups.
    """
    if night is None:
        return Lineage()
    earlier, ids = night.previous(), type_name(id_type)
    before = None if earlier is None else _usable(earlier.place, ids, events, groups)
    return Lineage(
        night.series.next_track(groups),
        before,
        "" if earlier is None else earlier.day,
        _usable(night.place, ids, None, groups) if night.has_result() else None,
        _refused(earlier) if earlier is not None and before is None else None,
    )


def lineage_from(place: Folder, id_type: pa.DataType, events: Events, groups: str = LAMBDA) -> Lineage:
    """As `lineage_of`, for a result outside of a series that starts from the result in `place`."""
    before = _usable(place, type_name(id_type), events, groups)
    tracks = None if before is None else before.manifest.tracks_of(groups)
    if before is None or tracks is None:
        return Lineage(refused=_refused(PreviousResult("", place)))
    day = str(before.manifest.settings.get("nightly", {}).get("date") or "")
    return Lineage(tracks.next, before, day)


def _refused(earlier: PreviousResult) -> EarlierRecord:
    return EarlierRecord(day=earlier.day, path=str(earlier.place), run=earlier.run)


def _usable(place: Folder, id_type: str, events: Events | None, groups: str) -> Result | None:
    """The result in the folder, if its tracks can be continued; else None, and the event `tracks_new` says why, unless
    the result lacks the program.
    """
    try:
        result = Result(place)
        if groups != LAMBDA and result.manifest.tracks_of(groups) is None:
            return None
        why = _difference(result, id_type, groups)
        if not why:
            # Finds damaged footers now.
            _ = result.vertices, result.dn_graphs if groups == LAMBDA else result.table(result.groups_table(groups))
            return result
    except StoreLost:
        raise
    except EdgemillError as error:
        why = message(error)
    if events is not None:
        events.emit("tracks_new", before=str(place), reason=why, **({} if groups == LAMBDA else {"program": groups}))
    return None


def _difference(old: Result, id_type: str, groups: str) -> str:
    manifest = old.manifest
    if groups == LAMBDA and not manifest.exact:
        return "it did not converge" if manifest.has_lambda else "it has no λ"
    if groups == LAMBDA and manifest.tracks is None:
        return "it was made by a release without tracks"
    if not are_same(manifest.input.id_type, id_type):
        return f"its ids are {manifest.input.id_type}, but the ids of this run are {id_type}"
    return ""
