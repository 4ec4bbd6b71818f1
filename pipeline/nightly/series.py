"""The results of an output path with `{date}`, one per day, on a disk or in an object store."""

from __future__ import annotations

import os
import posixpath
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ...tasks.errors import UsageError
from ...tasks.storage.folders import Folder
from ...tasks.storage.locations import normalized
from ..output.manifest import is_exact, is_result, next_track
from ..settings.dates import date_pattern, has_date, replace_date

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

    def next_track(self) -> int:
        """The first track that no existing result of the series has used, 1 without results.

        Raises UsageError if a manifest cannot be read.
        """
        with ThreadPoolExecutor(_READERS) as readers:
            return max(readers.map(next_track, map(self.at, self.days())), default=1)


def _normal(series: str) -> str:
    _, mark, path = normalized(series).rpartition("://")
    return path if mark else posixpath.normpath(path)
