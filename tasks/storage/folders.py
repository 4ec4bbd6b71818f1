"""Folders on disks, by path, and in object stores, by fsspec URL, and taking over of files by a new result."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec

from ..errors import NO_SPACE, EdgemillError, OutOfRoom, UsageError
from .atomic import link_or_copy
from .locations import Location, location_of, normalized
from .own_files import plain_path, read_own, remove_own, size_of_own
from .passwords import without_passwords
from .stores import is_client_error, is_store_lost, wrapped_store_error

_TRIES = 3


@dataclass(frozen=True, repr=False)
class Folder:
    """A folder, which need not exist. Picklable. `str` and `repr` show no secrets.

    A method that raises UsageError also raises StoreLost, if a store does not answer.
    """

    url: str
    """A path, or an fsspec URL."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """Storage options for fsspec; they may have secrets."""

    @property
    def is_local(self) -> bool:
        """Whether it is on a file system of this machine, shared or not."""
        return "://" not in self.url

    @property
    def files(self) -> Any:
        """Its fsspec file system. Raises UsageError if there is none for the URL."""
        return file_system(self.url, self.options)[0]

    def path(self, name: str = "") -> str:
        """The path of a file in the folder, or of the folder, as `files` uses it.

        Raises UsageError for a name that leads out of the folder.
        """
        root = str(file_system(self.url, self.options)[1])
        if not name:
            return root
        try:
            return f"{root.rstrip('/')}/{plain_path(name)}"
        except ValueError as error:
            raise UsageError(f"{self}: {error}") from error

    @property
    def absolute(self) -> str:
        """As `str`, but a path is absolute, for pages that are read elsewhere."""
        return os.path.abspath(self.url) if self.is_local else str(self)

    @property
    def location(self) -> Location:
        """Its location in a form that can be compared."""
        return location_of(self.url)

    def is_same(self, other: Folder) -> bool:
        """Whether both are the same folder, also through links on a disk."""
        return self.location == other.location

    def subfolder(self, name: str) -> Folder:
        """The folder `name` in this folder."""
        return Folder(f"{self.url}/{name}", self.options)

    def read(self, name: str) -> bytes | None:
        """The content of a file; None if it does not exist. Raises UsageError if the store refuses to read.

        On a disk no link among the components of `name` is followed: raises OSError.
        """
        with self.store_errors("read", name):
            try:
                if self.is_local:
                    return read_own(Path(self.path(name)), 1 + name.count("/"))
                self.files.invalidate_cache()  # other processes write here, too
                return bytes(self.files.cat_file(self.path(name)))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def read_ends(self, name: str, most: int) -> tuple[bytes, bytes] | None:
        """The first and the last `most` bytes of a file; None if it does not exist. Raises as `read` does."""
        with self.store_errors("read", name):
            self.files.invalidate_cache()  # as above
            try:
                path = self.path(name)
                size = int(self.files.size(path))
                first = self.files.cat_file(path, start=0, end=min(size, most)) if size else b""
                last = self.files.cat_file(path, start=size - most, end=size) if size > most else first
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
        return bytes(first), bytes(last)

    def write(self, name: str, content: bytes) -> None:
        """Create or replace a file; in an object store atomically. Raises UsageError."""
        with self.store_errors("write", name):
            self.files.pipe_file(self.path(name), content)

    def create(self, name: str, content: bytes) -> bool:
        """Create a file; False if it exists. With conditional writes, one of several concurrent writers succeeds.

        Raises UsageError.
        """
        with self.store_errors("write", name):
            for tries_left in reversed(range(_TRIES)):
                try:
                    self.files.pipe_file(self.path(name), content, mode="create")
                    return True
                except FileExistsError:
                    return False
                except OSError:  # some clients raise no better error if the file exists
                    if self.read(name) is not None:
                        return False
                    if not tries_left:
                        raise
        raise AssertionError("unreachable")

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with its content; a missing one is no error. Raises UsageError."""
        with self.store_errors("remove", name):
            path = self.path(name)
            if self.is_local:  # follows no link
                return remove_own(Path(path), 1 + name.count("/") + bool(name))
            self.files.invalidate_cache()
            try:
                self.files.rm(path, recursive=True)
            except FileNotFoundError:
                return
        return None

    def names(self) -> list[str]:
        """Names of its files and folders; empty if it does not exist. Raises UsageError."""
        with self.store_errors("list"):
            self.files.invalidate_cache()
            try:
                found = self.files.ls(self.path(), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        root = self.path()
        return sorted({name for path in found if (name := str(path).removeprefix(root).strip("/"))})

    def modified(self, name: str) -> datetime | None:
        """When a file was last written; None if it does not exist or the storage does not say."""
        try:
            time: datetime = self.files.modified(self.path(name))
        except (OSError, RuntimeError, KeyError):  # not every storage has the time
            return None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def sizes(self, names: list[str]) -> list[int | None]:
        """Bytes of each file of the folder in `names`; None for a missing file. Raises UsageError.

        On a disk raises OSError for a link among the components of a name, and for what is not a file.
        """
        with self.store_errors("list"):
            if self.is_local:
                return [size_of_own(Path(self.path(name)), 1 + name.count("/")) for name in names]
            self.files.invalidate_cache()
            found: dict[str, int] = {}
            for folder in {os.path.dirname(name) for name in names}:
                for path, info in self.files.find(self.path(folder), maxdepth=1, detail=True).items():
                    found[str(path)] = int(info["size"])
            return [found.get(self.path(name)) for name in names]

    @contextmanager
    def store_errors(self, operation: str, name: str = "") -> Iterator[None]:
        """Context in which errors of a store's client become StoreLost, if a retry may succeed, or UsageError.

        Errors of disks are not changed.
        """
        try:
            yield
        except EdgemillError:
            raise
        except Exception as error:
            if self.is_local or not is_client_error(error):
                raise
            raise wrapped_store_error(error, f"{operation} {self}/{name}" if name else f"{operation} {self}") from error

    def __str__(self) -> str:
        return without_passwords(self.url)

    def __repr__(self) -> str:
        return f"Folder({str(self)!r})"


def folder_at(folder: Folder | str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Folder:
    """The folder at a path or fsspec URL, which is normalized. Raises UsageError as `normalized` does."""
    return folder if isinstance(folder, Folder) else Folder(normalized(os.fspath(folder)), dict(options or {}))


def file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The fsspec file system of a path or URL, and the path in it. Raises UsageError."""
    try:
        system, path = fsspec.url_to_fs(normalized(url), **options)
    except ImportError as error:
        protocol = url.partition("://")[0]
        extra = "pip install 'edgemill[s3]'" if protocol in ("s3", "s3a") else str(error)
        raise UsageError(f"{without_passwords(url)} needs another package: {extra}") from error
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        if is_store_lost(error):
            raise
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(f"{without_passwords(url)} cannot be opened: {why}") from error
    return system, path


def take_over(source: Folder, name: str, target: Folder, as_name: str) -> None:
    """Make the file `name` below `source` also the file `as_name` below `target`, whose own folder is made.

    On a disk it is a hard link, or a copy where the file system has none. An object store copies it without sending it
    here. Between different storages the bytes are read and written. `source` is itself no link, and no link in it is
    followed. Raises UsageError, also for a name that leads out of a folder; OutOfRoom.
    """
    try:
        if source.is_local and target.is_local:
            new = Path(target.path(as_name))
            with suppress(FileExistsError):
                new.parent.mkdir(0o700)
            link_or_copy(Path(source.path(name)), new, own=2 + name.count("/"))
            return
        same = source.files is target.files or source.files == target.files
        with source.store_errors("read", name), target.store_errors("write", as_name):
            if same:
                target.files.cp_file(source.path(name), target.path(as_name))
                return
            content = source.files.cat_file(source.path(name))
            target.files.makedirs(target.path(as_name).rpartition("/")[0], exist_ok=True)
            target.files.pipe_file(target.path(as_name), content)
    except OSError as error:
        if error.errno in NO_SPACE:
            raise OutOfRoom(f"no room left on the disk of {target}") from error
        raise UsageError(f"cannot take {source}/{name} over to {target}: {error.strerror or error}") from error
