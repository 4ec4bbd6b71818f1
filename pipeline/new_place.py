"""A new file or folder of a user's on a disk: refused if one is there, filled beside its place, moved when whole."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..tasks.errors import UsageError
from ..tasks.places import Place

__all__ = ["new_file", "new_folder"]


@contextmanager
def new_file(
    path: str | os.PathLike[str], overwrite: bool = False, apart_from: Iterable[Place] = ()
) -> Iterator[BinaryIO]:
    """A file to write that appears at `path` when the block ends, and not at all if it fails.

    Raises UsageError if a file is there and is not to be replaced, if something else is there, if none can be written
    there, or if it would lie in one of the folders `apart_from`.
    """
    place = _absolute(path, apart_from)

    def refuse() -> None:
        if place.is_dir():
            raise UsageError(f"{place} is a folder: name a file")
        if os.path.lexists(place) and not overwrite:
            raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")
        if os.path.lexists(place) and not place.is_file():
            raise UsageError(f"{place} is a device or a pipe, which no file replaces: choose another place")

    refuse()
    beside = _beside(place)
    try:
        file = beside.open("xb")
    except OSError as error:
        raise UsageError(f"cannot write {place}: {error.strerror}") from error
    try:
        with file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        refuse()
        os.replace(beside, place)
    finally:
        beside.unlink(missing_ok=True)


@contextmanager
def new_folder(
    path: str | os.PathLike[str], own: Collection[str], overwrite: bool = False, apart_from: Iterable[Place] = ()
) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends, and is removed if it fails.

    With `overwrite` it replaces a folder that holds nothing but files of the names in `own`. Raises UsageError else, or
    as `new_file` does.
    """
    place = _absolute(path, apart_from)

    def refuse() -> None:
        if not os.path.lexists(place):
            return
        if not place.is_dir():
            raise UsageError(f"{place} exists and is not a folder: choose another")
        if not overwrite:
            raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")
        if others := {entry.name for entry in place.iterdir()} - set(own):
            raise UsageError(f"{place} holds something else, {min(others)}, so --overwrite leaves it alone")

    refuse()
    beside = _beside(place)
    try:
        beside.mkdir()
    except OSError as error:
        raise UsageError(f"cannot write {place}: {error.strerror}") from error
    aside = beside.with_name(beside.name + ".old")
    try:
        yield beside
        refuse()
        if place.exists():
            os.rename(place, aside)
        os.rename(beside, place)
    finally:
        if aside.exists() and not place.exists():
            os.rename(aside, place)
        for left in (beside, aside):
            shutil.rmtree(left, ignore_errors=True)


def _absolute(path: str | os.PathLike[str], apart_from: Iterable[Place]) -> Path:
    given = os.fspath(path)
    if "://" in given:
        raise UsageError(f"{given} is no place on a disk here: name one, and copy what is written there")
    found = Path(os.path.realpath(os.path.expanduser(given)))
    for place in apart_from:
        if place.is_local and found.is_relative_to(os.path.realpath(place.url)):
            raise UsageError(f"{found} lies in the result {place}, which stays as it is: choose another place")
    return found


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.edgemill-{uuid.uuid4().hex[:8]}")
