"""A new file or folder of a user's in an object store: made on this machine's disk, and put there when whole."""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from ..tasks.errors import EdgemillError, UsageError
from ..tasks.places import Place

__all__ = ["file_in_store", "folder_in_store"]

_COMING = re.compile(r"\.edgemill-[0-9a-f]{8}")
"""A folder of files that are on their way into the one that it lies in."""


@contextmanager
def file_in_store(place: Place, overwrite: bool) -> Iterator[BinaryIO]:
    """A file to write that is put at `place` when the block ends. Raises as `new_place.new_file` does."""

    def refuse() -> None:
        with place.reached("write"):
            place.files.invalidate_cache()
            if place.files.isdir(place.path()):
                raise UsageError(f"{place} is a folder: name a file")
            if place.files.exists(place.path()) and not overwrite:
                raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")

    refuse()
    with TemporaryDirectory(prefix="edgemill-") as folder:
        local = Path(folder) / "file"
        with local.open("xb") as file:
            yield file
        refuse()
        with place.reached("write"):
            place.files.put_file(str(local), place.path())


@contextmanager
def folder_in_store(place: Place, own: Sequence[str], overwrite: bool) -> Iterator[Path]:
    """A folder to fill whose files, of the names in `own`, come to `place` when the block ends: the last one of `own`
    last, and it is the first to go when they are replaced, so that it stands beside what it belongs to. What is
    replaced goes when all that comes is in the store, which then has but to copy it.

    Raises as `new_place.new_folder` does.
    """

    def refuse() -> None:
        names = place.names()
        with place.reached("write"):
            if place.files.isfile(place.path()):
                raise UsageError(f"{place} exists and is not a folder: choose another")
        if not overwrite and any(not _COMING.fullmatch(name) for name in names):
            raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")
        if others := {name for name in names if name not in own and not _COMING.fullmatch(name)}:
            raise UsageError(f"{place} holds something else, {min(others)}, so --overwrite leaves it alone")

    def clear() -> None:
        for name in reversed(own):
            place.remove(name)

    refuse()
    coming = place.within(f".edgemill-{uuid.uuid4().hex[:8]}")
    with TemporaryDirectory(prefix="edgemill-") as folder:
        yield Path(folder)
        made = [name for name in own if (Path(folder) / name).exists()]
        try:
            for name in made:
                with place.reached("write", name):
                    coming.files.put_file(str(Path(folder) / name), coming.path(name))
            refuse()
            clear()
            try:
                for name in made:
                    with place.reached("write", name):
                        try:
                            place.files.cp_file(coming.path(name), place.path(name))
                        except Exception:  # not every store copies; and another such call may have cleared what came
                            place.files.put_file(str(Path(folder) / name), place.path(name))
            except BaseException:
                with suppress(EdgemillError):  # the store may be why
                    clear()
                raise
        finally:
            with suppress(EdgemillError):
                for name in filter(_COMING.fullmatch, place.names()):  # those of calls that were killed, too
                    place.remove(name)
