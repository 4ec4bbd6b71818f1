"""One night of a series: the previous result, and the steps after a successful run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from ...tasks.errors import UsageError
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.pointer import pointer_target, refuse_non_pointer, set_pointer
from ..monitor.events import Events
from ..output.manifest import is_result
from ..results.result import Result
from ..settings.models import NightlySettings, Settings
from .retention import keep_newest
from .series import Series

_TRIES = 5
"""Attempts to move the pointer; one fails if another run finishes a newer night at the same time."""


class PreviousResult(NamedTuple):
    """The result of a previous night."""

    day: str
    place: Folder


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

        Raises UsageError if the pointer cannot be moved.
        """
        self.move_latest(events)
        if self.settings.keep is not None:
            keep_newest(self.series, self.settings.keep, self.day, events)

    def move_latest(self, events: Events) -> None:
        """Move `latest` to the newest exact result, if `nightly.latest` is true."""
        if not self.settings.latest:
            return
        pointer = self.series.at("latest")
        for _ in range(_TRIES):  # checked again after a move, so that the newer of two concurrent nights wins
            newest, now = self.series.newest(), pointer_target(pointer)
            place = None if newest is None else self.series.at(newest)
            if place is None or (now is not None and now.url == place.url):
                return
            set_pointer(pointer, place)
            events.emit("latest_moved", pointer=str(pointer), result=str(place), day=newest)


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
