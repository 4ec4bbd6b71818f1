"""The results of an output path with `{date}`, one per day, on a disk or in an object store."""

from __future__ import annotations

import os
import posixpath
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from ...tasks.errors import EdgemillError, StoreLost, UsageError
from ...tasks.storage.folders import Folder
from ...tasks.storage.locations import normalized
from ..output.manifest import Manifest, is_exact, is_result, next_track
from ..settings.dates import date_pattern, has_date, replace_date
from ..settings.declared_programs import LAMBDA
from .result import Result

_BESIDE = r"(\.failed\.log\.jsonl|\.edgemill[.-].*)?"
"""Suffixes of files of runs beside a result on a disk."""

_READERS = 16
"""Manifests that are read concurrently."""


@dataclass(frozen=True)
class Series:
    """The results of a series, below one folder."""

    root: Folder
    """The folder that contains them, at some depth."""
    parts: tuple[str, ...]
    """Path components below `root`; the first contains `{date}`."""

    @classmethod
    def around(cls, result: Folder, series: str, day: str) -> Series | None:
        """The series of the result of `day`; None if the path of the result does not match `series`."""
        names = [name for name in _normal(series).split("/") if name]
        first = next((at for at, name in enumerate(names) if has_date(name, "nightly.series")), None)
        if first is None:  # as in {date}/..
            return None
        parts = tuple(names[first:])
        end = "/" + "/".join(replace_date(part, day) for part in parts)
        url = os.path.abspath(os.path.expanduser(result.url)) if result.is_local else result.url
        return cls(Folder(url.removesuffix(end) or "/", result.options), parts) if url.endswith(end) else None

    def at(self, day: str) -> Folder:
        """The folder of the result of a day; for `latest`, of the pointer."""
        return self.root.subfolder("/".join(replace_date(part, day) for part in self.parts))

    def days(self) -> list[str]:
        """Days with a result or with files of a run, the newest first. Raises UsageError if they cannot be listed."""
        name = re.compile(rf"\.?{date_pattern(self.parts[0]).pattern}{_BESIDE}")
        try:
            entries = self.root.names()
        except OSError as error:
            raise UsageError(f"cannot list {self.root}: {error.strerror or error}") from error
        return sorted({found["day"] for entry in entries if (found := name.fullmatch(entry))}, reverse=True)

    def results(self) -> list[str]:
        """Days with a result, exact or not, the newest first."""
        return [day for day in self.days() if is_result(self.at(day))]

    def newest(self, before: str | None = None) -> str | None:
        """The last day with an exact result, if given before the day `before`."""
        return next(
            (day for day in self.days() if (before is None or day < before) and is_exact(self.at(day))),
            None,
        )

    def next_track(self, groups: str = LAMBDA) -> int:
        """The first track of DN-graphs, or of groups of a program, that no existing result of the series has used, 1
        without results.

        Raises UsageError if a manifest cannot be read.
        """
        with ThreadPoolExecutor(_READERS) as readers:
            return max(readers.map(partial(next_track, groups=groups), map(self.at, self.days())), default=1)


def _normal(series: str) -> str:
    _, mark, path = normalized(series).rpartition("://")
    return path if mark else posixpath.normpath(path)


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


def previous_result(result: Result) -> PreviousResult | None:
    """As `Night.before` of the night of a finished result. The series may have been moved since."""
    known = result.manifest.settings.get("nightly", {})  # absent in earlier releases
    day, series = known.get("date"), known.get("series")
    if not (isinstance(day, str) and isinstance(series, str) and known.get("compare") and result.manifest.exact):
        return None
    around = Series.around(result.place, series, day)
    return None if around is None else night_before(around, day)


def night_before(series: Series, day: str) -> PreviousResult | None:
    """The newest exact result of an earlier day than `day`."""
    newest = series.newest(before=day)
    return None if newest is None else PreviousResult(newest, series.at(newest))
