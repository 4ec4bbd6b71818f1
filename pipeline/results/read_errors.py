"""Errors of reading a result's tables, as edgemill's own, and the version of a result that a reader has opened."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import pyarrow as pa

from ...tasks.errors import EdgemillError, InputError
from ...tasks.inputs.opening import error_reason
from ...tasks.storage.folders import Folder
from ...tasks.storage.stores import store_errors
from ..output.manifest import MANIFEST_NAME, run_of


@contextmanager
def read_errors(folder: Folder) -> Iterator[None]:
    """Turn errors of reading tables, raised within, into InputError; into UsageError if a store denies access."""
    try:
        with folder.store_errors("read"):
            yield
    except MemoryError:
        raise
    except (pa.ArrowException, OSError) as error:
        raise InputError(f"the result is damaged: {folder}: {error_reason(error)}") from error


@dataclass(frozen=True)
class Version:
    """Which of the results that one place has had over time a reader has opened."""

    place: Folder
    stamp: str | None
    """Differs if the manifest was written again; None if there was none."""
    run: str = ""
    """The id of the run that made it."""

    @classmethod
    def at(cls, place: Folder) -> Self:
        """The version that is there now, of a run that is not known yet: take it before the manifest is read."""
        return cls(place, _stamp(place))

    @property
    def is_replaced(self) -> bool:
        """Whether another run has replaced the result, or it was removed.

        False if the store cannot be reached: whatever needs the store reports that.
        """
        try:
            return _stamp(self.place) != self.stamp and run_of(self.place) != self.run
        except EdgemillError:
            return False

    def refuse_replaced(self) -> None:
        """Raises InputError if the result was replaced or removed."""
        if self.is_replaced:
            raise self._changed()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Turn errors of reading the tables as `read_errors` does. Raises InputError if the result is replaced
        meanwhile: what was read may be of both results.
        """
        try:
            with read_errors(self.place):
                yield
        except Exception as error:
            if self.is_replaced:
                raise self._changed() from error
            raise
        self.refuse_replaced()

    def _changed(self) -> InputError:
        return InputError(
            f"{self.place} changed during the run: another run replaced the result of run {self.run}, or it was "
            "removed; run again"
        )


def _stamp(place: Folder) -> str | None:
    """Without owner, mode and number of links, which a backup changes."""
    place.files.invalidate_cache()
    try:
        if place.is_local:
            found = os.stat(place.path(MANIFEST_NAME))
            return f"{found.st_dev} {found.st_ino} {found.st_size} {found.st_mtime_ns}"
        with store_errors("look at", str(place)):
            return str(place.files.ukey(place.path(MANIFEST_NAME)))
    except OSError:
        return None
