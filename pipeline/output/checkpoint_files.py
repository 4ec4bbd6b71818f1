"""The place of a checkpoint, its files, and its indexes: a line with the SHA-256 of the text, then JSON.

Files are on a disk or in an object store, and are known by their names in the folder. On a disk only the user can read
the folder. Symbolic links at its path or in it are not followed.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, TypeAlias

from fsspec.implementations.local import LocalFileSystem
from pydantic import AfterValidator, BaseModel, ConfigDict, ValidationError

from ...tasks.errors import EdgemillError, UsageError
from ...tasks.storage.atomic import atomic_file
from ...tasks.storage.checksums import after_checksum_line, json_object, with_checksum_line
from ...tasks.storage.folders import Folder, file_system, folder_at
from ...tasks.storage.own_files import (
    is_own_folder,
    make_own_folder,
    plain_name,
    read_own,
    remove_busy_folder,
    remove_own,
)
from ...tasks.storage.passwords import without_passwords
from ...tasks.storage.stores import store_errors

Index: TypeAlias = dict[str, Any]
"""`format`; `folder`, a plain name; `files` by kind, with url, bytes and sha256; and other facts."""

INDEXES = ("update.json", "progress.json", "progress.before.json", "graph.json", "owned.json", "edges.json")
"""Names of all indexes that a checkpoint may have, the latest step first."""


def checkpoint_place(out: Folder, path: str | None) -> str:
    """The path or URL of the checkpoint of the output `out`; `path` is the setting `checkpoint.path`."""
    parent, _, last = out.url.rpartition("/")
    name = f".{last}.edgemill.checkpoint"
    if path is not None:
        # Several outputs may share the folder `path`, so each output has its own folder in it.
        return f"{path.rstrip('/')}/{name}-{sha256(os.fsencode(out.url)).hexdigest()[:16]}"
    return f"{parent}/{name}" if out.is_local else f"{out.url}/.edgemill.checkpoint"


def clear_earlier(place: Folder, time: datetime) -> None:
    """Remove a checkpoint that was last written before `time`. It stays if the storage does not report times.

    Raises UsageError or StoreLost for a store, OSError for a disk.
    """
    written = [when for name in INDEXES if (when := place.modified(name)) is not None]
    if written and max(written) <= time:
        place.remove("")


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    url: str
    bytes: int
    sha256: str


class _Index(BaseModel):
    """The fields of every index."""

    model_config = ConfigDict(extra="allow", strict=True)

    format: int
    folder: Annotated[str, AfterValidator(plain_name)]
    files: dict[Annotated[str, AfterValidator(plain_name)], list[_File]]
    made_of: dict[str, Any]


def seal(index: Mapping[str, Any]) -> bytes:
    """The bytes of an index file."""
    return with_checksum_line(json.dumps(index).encode())


def opened(content: bytes) -> Index:
    """The index of a file, in any format. Raises ValueError if the checksum is wrong."""
    return json_object(after_checksum_line(content))


def checked(index: Index) -> Index:
    """The validated index. Raises ValueError for missing fields and for names that are not plain file names."""
    try:
        return _Index.model_validate(index).model_dump()
    except ValidationError as error:
        problem = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}") from error


def files_at(place: str, options: Mapping[str, Any]) -> AnyFiles:
    """The files of the checkpoint at a path or fsspec URL. Raises UsageError for a file system that cannot be used."""
    files, root = file_system(place, options)
    return _OnDisk(Path(root)) if type(files) is LocalFileSystem else _InStore(files, root, place)


def clear_files(place: str, options: Mapping[str, Any]) -> None:
    """Remove the checkpoint at a path or fsspec URL, and files that a killed run left in it. Raises UsageError."""
    try:
        with folder_at(place, options).store_errors("remove"):
            files_at(place, options).clear()
    except OSError as error:
        raise UsageError(
            f"cannot remove the checkpoint {without_passwords(place)}: {error.strerror or error}"
        ) from error


class _OnDisk:
    def __init__(self, root: Path) -> None:
        self._root = root

    def check(self) -> None:
        """Raises UsageError if the path exists and is not a folder of this user."""
        is_own_folder(self._root)

    def names(self) -> list[str]:
        """Names of the files and folders in the checkpoint."""
        return os.listdir(self._root) if is_own_folder(self._root) else []

    def make(self, folder: str) -> None:
        """Make a new folder in the checkpoint. Raises UsageError like `check`, and OSError."""
        if is_own_folder(self._root):
            self._root.chmod(0o700)  # an earlier release let others read it
        else:
            self._root.parent.mkdir(parents=True, exist_ok=True)
            make_own_folder(self._root)
        make_own_folder(self._root / plain_name(folder), own=2)

    def url(self, folder: str, name: str) -> str:
        """The URL of a file in a folder of the checkpoint, for tasks."""
        return f"file://{self._root}/{folder}/{name}"

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it does not exist."""
        return read_own(self._root / plain_name(name), own=2)

    def write(self, name: str, content: bytes) -> None:
        """Write or replace a file atomically."""
        with atomic_file(self._root / plain_name(name), own=2, private=True) as file:
            file.write(content)

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content."""
        remove_own(self._root / plain_name(name), own=2)

    def forget(self, folder: str) -> None:
        """Remove a folder to which tasks may still write. Also remove the checkpoint if it is then empty."""
        with suppress(OSError, EdgemillError):
            gone = self._root / f"{plain_name(folder)}-failed"
            os.rename(self._root / folder, gone)  # running tasks can then no longer write to it
            remove_busy_folder(gone, own=2)
            self._root.rmdir()

    def clear(self) -> None:
        """Remove the checkpoint. A symbolic link at its path is removed, not followed."""
        remove_own(self._root)


class _InStore:
    """The interface of `_OnDisk` for an object store."""

    def __init__(self, files: Any, root: str, place: str) -> None:
        self._files, self._root, self._place = files, root, place

    def check(self) -> None:
        """Accepts every path, as a store has no links."""

    def names(self) -> list[str]:
        with store_errors("list", self._place):
            found = self._files.ls(self._root, detail=False) if self._files.isdir(self._root) else []
        return [str(path).rstrip("/").rpartition("/")[2] for path in found]

    def make(self, folder: str) -> None:
        with store_errors("write", self._place):
            self._files.makedirs(self._path(folder), exist_ok=True)

    def url(self, folder: str, name: str) -> str:
        return str(self._files.unstrip_protocol(f"{self._path(folder)}/{plain_name(name)}"))

    def read(self, name: str) -> bytes | None:
        path = self._path(name)
        with store_errors("read", self._place):
            return self._files.cat_file(path) if self._files.exists(path) else None

    def write(self, name: str, content: bytes) -> None:
        with store_errors("write", self._place):
            self._files.pipe_file(self._path(name), content)

    def remove(self, name: str) -> None:
        with store_errors("remove", self._place), suppress(FileNotFoundError):
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
        return f"{self._root}/{plain_name(name)}"


AnyFiles: TypeAlias = _OnDisk | _InStore
