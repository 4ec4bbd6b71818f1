"""A new file or folder of a user's: refused if one is there, filled elsewhere, in its place when whole."""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import BinaryIO

from ..tasks.errors import UsageError
from ..tasks.own_files import followed, make_own_folder, publish, remove_own, replacing, usual_modes
from ..tasks.places import Place, place_of
from .new_in_store import file_in_store, folder_in_store
from .overlap import refuse_within

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
    place = place_of(path)
    if place.is_local:  # a link at the place itself is not followed
        folder, name = os.path.split(os.path.expanduser(place.url))
        place = Place(os.path.join(os.path.realpath(folder), name))
    refuse_within(place, apart_from)
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
    place = place_of(path)
    if place.is_local:
        place = Place(str(followed(Path(os.path.expanduser(place.url)))))
    refuse_within(place, apart_from)
    with _folder_on_disk(place, own, overwrite) if place.is_local else folder_in_store(place, own, overwrite) as folder:
        yield folder


@contextmanager
def _file_on_disk(at: Place, overwrite: bool) -> Iterator[BinaryIO]:
    place = Path(at.url)

    def refuse() -> None:
        if place.is_symlink():
            raise UsageError(f"{place} is a symbolic link, which is not followed: name the file itself")
        if place.is_dir():
            raise UsageError(f"{place} is a folder: name a file")
        if os.path.lexists(place) and not overwrite:
            raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")
        if os.path.lexists(place) and not place.is_file():
            raise UsageError(f"{place} is a device or a pipe, which no file replaces: choose another place")

    refuse()
    with ExitStack() as stack:
        try:
            file = stack.enter_context(replacing(place, refuse))
        except OSError as error:
            raise UsageError(f"cannot write {place}: {error.strerror}") from error
        yield file


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
    beside = place.with_name(f".{place.name}.edgemill-{uuid.uuid4().hex[:8]}")
    try:
        make_own_folder(beside)
    except OSError as error:
        raise UsageError(f"cannot write {place}: {error.strerror}") from error
    aside = beside.with_name(beside.name + ".old")
    try:
        yield beside
        publish(beside, usual_modes(beside))
        refuse()
        if os.path.lexists(place):
            os.rename(place, aside)
        os.rename(beside, place)
    finally:
        if aside.exists() and not place.exists():
            os.rename(aside, place)
        for left in (beside, aside):
            with suppress(OSError):
                remove_own(left)
