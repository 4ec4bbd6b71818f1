"""A new file or folder of a user's: refused if one is there, filled elsewhere, in its place when whole."""

from __future__ import annotations

import os
import shutil
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from ..tasks.errors import UsageError
from ..tasks.places import Place, place_of
from .new_in_store import file_in_store, folder_in_store

__all__ = ["new_file", "new_folder"]


@contextmanager
def new_file(
    path: Place | str | os.PathLike[str], overwrite: bool = False, apart_from: Iterable[Place] = ()
) -> Iterator[BinaryIO]:
    """A file to write that appears at `path`, which may be an fsspec URL, when the block ends, and not at all if it
    fails.

    Raises UsageError if a file is there and is not to be replaced, if something else is there, if none can be written
    there, or if it would lie in one of the folders `apart_from`.
    """
    place = _apart(path, apart_from)
    with _file_on_disk(place, overwrite) if place.is_local else file_in_store(place, overwrite) as file:
        yield file


@contextmanager
def new_folder(
    path: Place | str | os.PathLike[str], own: Sequence[str], overwrite: bool = False, apart_from: Iterable[Place] = ()
) -> Iterator[Path]:
    """A folder to fill that becomes `path` when the block ends, and is removed if it fails.

    With `overwrite` it replaces a folder that holds nothing but files of the names in `own`. Raises UsageError else, or
    as `new_file` does. In an object store, which cannot rename, files appear one by one: the last of `own` says that
    all are there.
    """
    place = _apart(path, apart_from)
    with _folder_on_disk(place, own, overwrite) if place.is_local else folder_in_store(place, own, overwrite) as folder:
        yield folder


def _apart(path: Place | str | os.PathLike[str], results: Iterable[Place]) -> Place:
    """The place, if it is in none of the results; on a disk without links."""
    place = place_of(path)
    if place.is_local:
        place = Place(os.path.realpath(os.path.expanduser(place.url)))
    for result in results:
        if _lies_in(place, result):
            raise UsageError(f"{place} lies in the result {result}, which stays as it is: choose another place")
    return place


def _lies_in(place: Place, result: Place) -> bool:
    if place.is_local or result.is_local:
        return place.is_local and result.is_local and Path(place.url).is_relative_to(os.path.realpath(result.url))
    return type(place.files) is type(result.files) and f"{place.path()}/".startswith(f"{result.path()}/")


@contextmanager
def _file_on_disk(at: Place, overwrite: bool) -> Iterator[BinaryIO]:
    place = Path(at.url)

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
def _folder_on_disk(at: Place, own: Sequence[str], overwrite: bool) -> Iterator[Path]:
    place = Path(at.url)

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


def _beside(place: Path) -> Path:
    return place.with_name(f".{place.name}.edgemill-{uuid.uuid4().hex[:8]}")
