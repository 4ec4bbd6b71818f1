"""A new file or folder of a user's in an object store: made on this machine's disk, and put there when whole."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import BinaryIO

from ..tasks.errors import EdgemillError, UsageError
from ..tasks.places import Place

__all__ = ["file_in_store", "folder_in_store"]


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
    """A folder to fill whose files, of the names in `own`, are put at `place` when the block ends: the last one of
    `own` last, and it is the first to go when they are replaced, so that it stands beside what it belongs to.

    Raises as `new_place.new_folder` does.
    """

    def refuse() -> None:
        names = place.names()
        with place.reached("write"):
            if place.files.isfile(place.path()):
                raise UsageError(f"{place} exists and is not a folder: choose another")
        if names and not overwrite:
            raise UsageError(f"{place} exists: choose another, or replace it with --overwrite")
        if others := set(names) - set(own):
            raise UsageError(f"{place} holds something else, {min(others)}, so --overwrite leaves it alone")

    def clear() -> None:
        for name in reversed(own):
            place.remove(name)

    refuse()
    with TemporaryDirectory(prefix="edgemill-") as folder:
        yield Path(folder)
        refuse()
        clear()
        try:
            for name in own:
                if (local := Path(folder) / name).exists():
                    with place.reached("write", name):
                        place.files.put_file(str(local), place.path(name))
        except BaseException:
            with suppress(EdgemillError):  # the store may be why
                clear()
            raise
