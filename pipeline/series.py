"""The results of one output path with `{date}`, a day each: on a disk or in an object store."""

from __future__ import annotations

import os
import posixpath
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..tasks.errors import UsageError
from ..tasks.locations import normal
from ..tasks.places import Place
from .dates import filled_in, has_date, pattern_of
from .manifest import is_exact, is_result, next_track

__all__ = ["Series"]

_BESIDE = r"(\.failed\.log\.jsonl|\.edgemill[.-].*)?"
"""Ends of the names that runs leave beside a result on a disk."""

_READERS = 16
"""Manifests that are read at a time."""


@dataclass(frozen=True)
class Series:
    """Results of many days, below one folder."""

    root: Place
    """The folder that they lie in, at some depth."""
    parts: tuple[str, ...]
    """Names on the way from there, the first of them with `{date}`."""

    @classmethod
    def around(cls, result: Place, series: str, day: str) -> Series | None:
        """The series of the result of that day; None if that does not lie where `series`, its path, says."""
        names = [name for name in _normal(series).split("/") if name]
        first = next((at for at, name in enumerate(names) if has_date(name, "nightly.series")), None)
        if first is None:  # as of {date}/..
            return None
        parts = tuple(names[first:])
        end = "/" + "/".join(filled_in(part, day) for part in parts)
        url = os.path.abspath(os.path.expanduser(result.url)) if result.is_local else result.url
        return cls(Place(url.removesuffix(end) or "/", result.options), parts) if url.endswith(end) else None

    def at(self, day: str) -> Place:
        """Where the result of a day is, or would be; `latest` is no day, and where the pointer is."""
        return self.root.within("/".join(filled_in(part, day) for part in self.parts))

    def days(self) -> list[str]:
        """Days that have anything there, a result or what a run left, the newest first.

        Raises UsageError if they cannot be listed.
        """
        name = re.compile(rf"\.?{pattern_of(self.parts[0]).pattern}{_BESIDE}")
        try:
            entries = self.root.names()
        except OSError as error:
            raise UsageError(f"cannot list {self.root}: {error.strerror or error}") from error
        return sorted({found["day"] for entry in entries if (found := name.fullmatch(entry))}, reverse=True)

    def results(self) -> list[str]:
        """Days that have a result, exact or not, the newest first."""
        return [day for day in self.days() if is_result(self.at(day))]

    def newest(self, before: str | None = None) -> str | None:
        """The last day, before the given one, that has an exact result."""
        return next(
            (day for day in self.days() if (before is None or day < before) and is_exact(self.at(day))),
            None,
        )

    def next_track(self) -> int:
        """A number above all tracks that the results of the series, as far as they are there, have given out; 1 for the
        first. Raises UsageError if a manifest cannot be read.
        """
        with ThreadPoolExecutor(_READERS) as readers:
            return max(readers.map(next_track, map(self.at, self.days())), default=1)


def _normal(series: str) -> str:
    _, mark, path = normal(series).rpartition("://")
    return path if mark else posixpath.normpath(path)
