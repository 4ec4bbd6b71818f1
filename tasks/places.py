"""Folders on disks, by their paths, and in object stores, by fsspec URLs."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import fsspec

from .errors import EdgemillError, UsageError
from .locations import Location, location_of, normal
from .own_files import plain_names, remove_own
from .passwords import without_passwords
from .stores import as_ours, is_clients, is_lost

__all__ = ["Place", "file_system", "place_of"]

_TRIES = 3


@dataclass(frozen=True, repr=False)
class Place:
    """A folder. Picklable; neither `str` nor `repr` show secrets. What raises UsageError raises StoreLost, too, where a
    store does not answer.
    """

    url: str
    """A path, or an fsspec URL."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For fsspec; may hold secrets."""

    @property
    def is_local(self) -> bool:
        """Whether it is a folder of a file system of this machine, shared or not."""
        return "://" not in self.url

    @property
    def files(self) -> Any:
        """The fsspec file system it is in. Raises UsageError if there is no such."""
        return file_system(self.url, self.options)[0]

    def path(self, name: str = "") -> str:
        """The path that `files` knows something in the folder by, or the folder itself.

        Raises UsageError for a name that leads out of the folder.
        """
        root = str(file_system(self.url, self.options)[1])
        if not name:
            return root
        try:
            return f"{root.rstrip('/')}/{plain_names(name)}"
        except ValueError as error:
            raise UsageError(f"{self}: {error}") from error

    @property
    def whole(self) -> str:
        """What `str` says, with a path from the root on: a page that is read elsewhere has no use for others."""
        return os.path.abspath(self.url) if self.is_local else str(self)

    @property
    def location(self) -> Location:
        """Where it lies, to be compared with others."""
        return location_of(self.url)

    def is_same(self, other: Place) -> bool:
        """Whether both are one folder, on a disk by whatever links."""
        return self.location == other.location

    def within(self, name: str) -> Place:
        """A folder in this one."""
        return Place(f"{self.url}/{name}", self.options)

    def read(self, name: str) -> bytes | None:
        """What a file holds; None if it is not there. Raises UsageError for a store that does not let read."""
        with self.reached("read", name):
            self.files.invalidate_cache()  # other processes write here too
            try:
                return bytes(self.files.cat_file(self.path(name)))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None

    def ends(self, name: str, most: int) -> tuple[bytes, bytes] | None:
        """The first and the last bytes of a file, `most` of each at most; None if it is not there. Raises as `read`."""
        with self.reached("read", name):
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
        """Make a file, or replace it, whole or not at all in an object store. Raises UsageError."""
        with self.reached("write", name):
            self.files.pipe_file(self.path(name), content)

    def create(self, name: str, content: bytes) -> bool:
        """Make a file that is not there: of several that try, one succeeds if the store has conditional writes.

        Raises UsageError.
        """
        with self.reached("write", name):
            for left in reversed(range(_TRIES)):
                try:
                    self.files.pipe_file(self.path(name), content, mode="create")
                    return True
                except FileExistsError:
                    return False
                except OSError:  # some clients have no better word for "it is there"
                    if self.read(name) is not None:
                        return False
                    if not left:
                        raise
        raise AssertionError("no try was the last")

    def remove(self, name: str) -> None:
        """Remove a file, or a folder with all that is in it; it need not be there. Raises UsageError."""
        with self.reached("remove", name):
            path = self.path(name)
            if self.is_local:  # no link is followed
                return remove_own(Path(path), 1 + name.count("/") + bool(name))
            self.files.invalidate_cache()
            try:
                self.files.rm(path, recursive=True)
            except FileNotFoundError:
                return
        return None

    def names(self) -> list[str]:
        """Names of the files and folders in it; none if it is not there. Raises UsageError."""
        with self.reached("list"):
            self.files.invalidate_cache()
            try:
                found = self.files.ls(self.path(), detail=False)
            except (FileNotFoundError, NotADirectoryError):
                return []
        root = self.path()
        return sorted({name for path in found if (name := str(path).removeprefix(root).strip("/"))})

    def modified(self, name: str) -> datetime | None:
        """When a file was written last; None where that is not told, or no file is there."""
        try:
            time: datetime = self.files.modified(self.path(name))
        except (OSError, RuntimeError, KeyError):  # not every storage tells
            return None
        return time if time.tzinfo else time.replace(tzinfo=UTC)

    def sizes(self, names: list[str]) -> list[int | None]:
        """Sizes of files in it; None for one that is not there. Raises UsageError."""
        with self.reached("list"):
            self.files.invalidate_cache()
            found: dict[str, int] = {}
            for folder in {os.path.dirname(name) for name in names}:
                for path, info in self.files.find(self.path(folder), maxdepth=1, detail=True).items():
                    found[str(path)] = int(info["size"])
            return [found.get(self.path(name)) for name in names]

    @contextmanager
    def reached(self, what: str, name: str = "") -> Iterator[None]:
        """Within it, what a store's client raises becomes StoreLost, if it passes by itself, or UsageError; what a disk
        raises stays as it is.
        """
        try:
            yield
        except EdgemillError:
            raise
        except Exception as error:
            if self.is_local or not is_clients(error):
                raise
            raise as_ours(error, f"{what} {self}/{name}" if name else f"{what} {self}") from error

    def __str__(self) -> str:
        return without_passwords(self.url)

    def __repr__(self) -> str:
        return f"Place({str(self)!r})"


def place_of(folder: Place | str | os.PathLike[str], options: Mapping[str, Any] | None = None) -> Place:
    """A folder by its path or fsspec URL, in its normal form. Raises UsageError for what is no location of files."""
    return folder if isinstance(folder, Place) else Place(normal(os.fspath(folder)), dict(options or {}))


def file_system(url: str, options: Mapping[str, Any]) -> tuple[Any, str]:
    """The fsspec file system of a path or URL, and what it calls it. Raises UsageError that says what to install."""
    try:
        system, path = fsspec.url_to_fs(normal(url), **options)
    except ImportError as error:
        protocol = url.partition("://")[0]
        extra = "pip install 'edgemill[s3]'" if protocol in ("s3", "s3a") else str(error)
        raise UsageError(f"{without_passwords(url)} needs another package: {extra}") from error
    except (AttributeError, LookupError, OSError, TypeError, ValueError) as error:
        if is_lost(error):
            raise
        why = (error.strerror if isinstance(error, OSError) else None) or error
        raise UsageError(f"{without_passwords(url)} cannot be opened: {why}") from error
    return system, path
