"""The files of a checkpoint, on a disk or in an object store, by their names in its folder.

On a disk the folder is its user's alone, and no link at its place or in it is followed.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeAlias

from fsspec.implementations.local import LocalFileSystem

from ..tasks.errors import EdgemillError
from ..tasks.own_files import is_own_folder, make_own_folder, open_own, plain, read_own, remove_own, remove_set_aside
from ..tasks.places import file_system
from ..tasks.stores import asked

__all__ = ["AnyFiles", "files_at"]


def files_at(place: str, options: Mapping[str, Any]) -> AnyFiles:
    """The files of the checkpoint at a path or fsspec URL. Raises UsageError if its file system cannot be had."""
    files, root = file_system(place, options)
    return _OnDisk(Path(root)) if type(files) is LocalFileSystem else _InStore(files, root, place)


class _OnDisk:
    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self) -> None:
        """Raises UsageError if what is at its place is no folder of this user's."""
        is_own_folder(self._root)

    def names(self) -> list[str]:
        """Files and folders in it."""
        return os.listdir(self._root) if is_own_folder(self._root) else []

    def make(self, folder: str) -> None:
        """Make a new folder in it. Raises UsageError as `check` does, OSError."""
        if is_own_folder(self._root):
            self._root.chmod(0o700)  # an earlier release let others read it
        else:
            self._root.parent.mkdir(parents=True, exist_ok=True)
            make_own_folder(self._root)
        make_own_folder(self._root / plain(folder), own=2)

    def url(self, folder: str, name: str) -> str:
        """What a task knows a file in one of its folders by."""
        return f"file://{self._root}/{folder}/{name}"

    def read(self, name: str) -> bytes | None:
        """What a file holds; None if there is none."""
        return read_own(self._root / plain(name), own=2)

    def write(self, name: str, content: bytes) -> None:
        """Make a file, or replace it, whole or not at all."""
        half = self._root / f"{plain(name)}.part"
        with open(open_own(half, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, own=2), "wb") as file:
            file.write(content)
        os.replace(half, self._root / name)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it."""
        remove_own(self._root / plain(name), own=2)

    def forget(self, folder: str) -> None:
        """Remove a folder that tasks may still write to, and the checkpoint if nothing else is in it."""
        with suppress(OSError, EdgemillError):
            gone = self._root / f"{plain(folder)}-failed"
            os.rename(self._root / folder, gone)  # tasks that still run find nowhere to write
            remove_set_aside(gone, own=2)
            self._root.rmdir()

    def clear(self) -> None:
        """Remove all of it; of a link at its place, the link."""
        remove_own(self._root)


class _InStore:
    """As `_OnDisk`, in an object store."""

    def __init__(self, files: Any, root: str, place: str) -> None:
        self._files, self._root, self._place = files, root, place

    def check(self) -> None:
        """A store has no links."""

    def names(self) -> list[str]:
        with asked("list", self._place):
            found = self._files.ls(self._root, detail=False) if self._files.isdir(self._root) else []
        return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def make(self, folder: str) -> None:
        with asked("write", self._place):
            self._files.makedirs(self._path(folder), exist_ok=True)

    def url(self, folder: str, name: str) -> str:
        return str(self._files.unstrip_protocol(f"{self._path(folder)}/{plain(name)}"))

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        with asked("read", self._place):
            return self._files.cat_file(path) if self._files.exists(path) else None

    def write(self, name: str, content: bytes) -> None:
        with asked("write", self._place):
            self._files.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        with asked("remove", self._place), suppress(FileNotFoundError):
            self._files.rm(self._path(name), recursive=True)

    def forget(self, folder: str) -> None:
        with suppress(OSError, EdgemillError):
            self.remove(folder)
            if not self.names():
                self._files.rmdir(self._root)

    def clear(self) -> None:
        if self._files.isdir(self._root):
            self._files.rm(self._root, recursive=True)

    def _path(self, name: str) -> str:
        return f"{self._root}/{plain(name)}"


AnyFiles: TypeAlias = _OnDisk | _InStore
