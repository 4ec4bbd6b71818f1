"""One night of a series: the previous result, and the steps after a successful run."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import dataclass
from typing import NamedTuple, Self

from ...tasks.errors import EdgemillError, InputError, StoreLost, UsageError
from ...tasks.ids.display import are_same
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.pointer import pointer_target, refuse_non_pointer, set_pointer
from ..monitor.events import Events
from ..monitor.status import Status, status_of
from ..output.manifest import Manifest, is_result
from ..results.result import Result
from ..settings.models import NightlySettings, Settings
from .retention import keep_newest
from .series import Series

_TRIES = 5
"""Attempts to move the pointer; one fails if another run finishes a newer night at the same time."""


class PreviousResult(NamedTuple):
    """The result of a previous night."""

    day: str
    """Empty for a result outside of a series."""
    place: Folder

    def manifest(self) -> Manifest | None:
        """Its manifest; None if it is damaged. Raises StoreLost."""
        try:
            return Result(self.place).manifest
        except StoreLost:
            raise
        except EdgemillError:
            return None

    @property
    def run(self) -> str:
        """Its run; empty if its manifest is damaged. Raises StoreLost."""
        manifest = self.manifest()
        return "" if manifest is None else manifest.run

    def __str__(self) -> str:
        return self.day or str(self.place)


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
        return _before(self.series, self.day)

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
    if manifest.tracks is None:
        return True
    then = manifest.tracks.previous or manifest.tracks.refused
    return then is not None and (then.run == run or bool(before.day and then.day > before.day))


def refuse_other_ids(before: PreviousResult | None, settings: NightlySettings, id_type: str) -> None:
    """Raises InputError if ids have another type than in the night before, unless `nightly.least_share` is null."""
    if before is None or settings.least_share is None or (manifest := before.manifest()) is None:
        return
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


def later_failures(out: Folder) -> list[tuple[str, Status]]:
    """Days after the one that the pointer `out` points to, whose last run failed or died, with the status of each, the
    oldest first. Empty if `out` is no pointer of a series. Raises as `status_of` does.
    """
    target = pointer_target(out)
    manifest = None if target is None else PreviousResult("", target).manifest()
    known = {} if manifest is None else manifest.settings.get("nightly", {})
    day, name = str(known.get("date") or ""), str(known.get("series") or "")
    series = Series.around(target, name, day) if target is not None and day and name else None
    if series is None:
        return []
    newer = [(own, status_of(series.at(own))) for own in reversed(series.days()) if own > day]
    return [(own, status) for own, status in newer if status.state in ("failed", "dead")]


def previous_result(result: Result) -> PreviousResult | None:
    """As `Night.before` of the night of a finished result. The series may have been moved since."""
    known = result.manifest.settings.get("nightly", {})  # absent in earlier releases
    day, series = known.get("date"), known.get("series")
    if not (isinstance(day, str) and isinstance(series, str) and known.get("compare") and result.manifest.exact):
        return None
    around = Series.around(result.place, series, day)
    return None if around is None else _before(around, day)


def _is_plain(place: Folder) -> bool:
    """Whether an object store's URL has no empty names, `.` or `..`; always true on a disk."""
    _, mark, path = place.url.partition("://")
    return not mark or not {"", ".", ".."} & {*path.removeprefix("/").split("/")}


def _before(series: Series, day: str) -> PreviousResult | None:
    newest = series.newest(before=day)
    return None if newest is None else PreviousResult(newest, series.at(newest))
