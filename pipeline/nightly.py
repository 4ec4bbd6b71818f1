"""A night among others: the result before it, and what is done when it has succeeded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Self

from ..tasks.errors import UsageError
from ..tasks.passwords import without_passwords
from ..tasks.places import Place, place_of
from ..tasks.pointer import point, pointed, refuse_others
from .manifest import is_result
from .result import Result
from .retention import keep_newest
from .series import Series
from .settings import NightlySettings, Settings
from .telemetry import Events

__all__ = ["Earlier", "Night", "night_before"]

_TRIES = 5
"""Times that the pointer is moved on, each time because another run has finished a newer night meanwhile."""


class Earlier(NamedTuple):
    """The result of an earlier night."""

    day: str
    place: Place


@dataclass(frozen=True)
class Night:
    """One day of a series."""

    day: str
    series: Series
    settings: NightlySettings

    @classmethod
    def of(cls, settings: Settings) -> Self | None:
        """The night of these settings; None if their output has no `{date}`.

        Raises UsageError if something else is where the pointer is to be, or if results of other days cannot be told by
        their paths.
        """
        nightly, out = settings.nightly, place_of(settings.output.path, settings.output.storage_options)
        if nightly.series is None or nightly.date is None:
            return None
        series = Series.around(out, nightly.series, nightly.date)
        if series is None or not series.at(nightly.date).is_same(out) or not _is_plain(out):
            raise UsageError(
                f"output.path {without_passwords(nightly.series)}: other nights cannot be found by it: "
                "write it without .. and without empty names"
            )
        if nightly.latest:
            refuse_others(series.at("latest"))
        return cls(nightly.date, series, nightly)

    def before(self) -> Earlier | None:
        """The newest exact result of an earlier day, if the settings ask for a comparison."""
        return self.previous() if self.settings.compare else None

    def previous(self) -> Earlier | None:
        """The newest exact result of an earlier day. Raises UsageError if results cannot be looked for."""
        return _before(self.series, self.day)

    @property
    def place(self) -> Place:
        """Where the result of this night is, or is to be."""
        return self.series.at(self.day)

    def has_result(self) -> bool:
        """Whether a result of this night is there already."""
        return is_result(self.place)

    def succeeded(self, events: Events) -> None:
        """Move `latest`, then remove what is too old. Done again, it does what was not done yet.

        Raises UsageError if the pointer cannot be moved.
        """
        self.move_latest(events)
        if self.settings.keep is not None:
            keep_newest(self.series, self.settings.keep, self.day, events)

    def move_latest(self, events: Events) -> None:
        """Let `latest`, if there is to be one, stand for the newest exact result."""
        if not self.settings.latest:
            return
        pointer = self.series.at("latest")
        for _ in range(_TRIES):  # looked at again after it was moved, so that of two runs the newer night wins
            newest, now = self.series.newest(), pointed(pointer)
            place = None if newest is None else self.series.at(newest)
            if place is None or (now is not None and now.url == place.url):
                return
            point(pointer, place)
            events.emit("latest_moved", pointer=str(pointer), result=str(place), day=newest)


def night_before(result: Result) -> Earlier | None:
    """The result of the night before a finished one, as `Night.before` has it, wherever they all lie by now."""
    known = result.manifest.settings.get("nightly", {})  # earlier releases have none
    day, series = known.get("date"), known.get("series")
    if not (day and series and known.get("compare") and result.converged):
        return None
    around = Series.around(result.place, series, day)
    return None if around is None else _before(around, day)


def _is_plain(place: Place) -> bool:
    """Whether names in an object store's URL stand for themselves; a disk takes any."""
    _, mark, path = place.url.partition("://")
    return not mark or not {"", ".", ".."} & {*path.removeprefix("/").split("/")}


def _before(series: Series, day: str) -> Earlier | None:
    newest = series.newest(before=day)
    return None if newest is None else Earlier(newest, series.at(newest))
