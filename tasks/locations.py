"""Locations that users give, in one form each, so that they can be compared: paths, and fsspec URLs.

What is on a disk is a path, however it is spelt: `file://`, `file:`, `local://` and `local:` are the same. The scheme
of a URL is in small letters. A URL is not decoded: fsspec takes `%20` for these three characters, and so do we.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass

from fsspec.core import has_magic
from fsspec.registry import get_filesystem_class, known_implementations

from .errors import UsageError
from .passwords import without_passwords

__all__ = ["Location", "location_of", "normal", "tidied"]

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://|::)")
_ON_DISK = re.compile("(file|local):(//)?", re.IGNORECASE)
_NO_FILES = re.compile("data:", re.IGNORECASE)


@dataclass(frozen=True)
class Location:
    """Where something lies. Two of one file or folder are equal, as far as that can be told without looking there."""

    system: str
    """`file`, or the class of its fsspec file system: `s3://` and `s3a://` are one."""
    path: str
    """Absolute, without links on a disk; no empty name, `.` or `..` is in it, and no slash at its end."""

    def lies_in(self, folder: Location) -> bool:
        """Whether it is that folder, or in it."""
        return self.system == folder.system and f"{self.path}/".startswith(f"{folder.path.rstrip('/')}/")


def normal(location: str) -> str:
    """The path or fsspec URL of a location, which is opened and told by it.

    Raises UsageError for what is no location of files, for a URL without a path, and for a relative path where the
    working directory was removed.
    """
    if "\0" in location:
        raise UsageError(f"{location!r} has a NUL in it, and no file or folder has such a name")
    if _NO_FILES.match(location):
        raise UsageError(f"{location[:40]!r} is a data: URL, which is no location of files: name a file or folder")
    url = _SCHEME.sub(lambda scheme: scheme[0].lower(), location)
    if "::" not in url:
        path = _ON_DISK.sub("", url, count=1) if _ON_DISK.match(url) else url
        if not path or ("://" in path and not path.partition("://")[2].strip("/")):
            raise UsageError(f"{without_passwords(location)!r} names no file or folder: say which")
        url = path
    if "://" in url:
        return url.rstrip("/")
    if not url.startswith(("/", "~")):
        _refuse_without_directory(url)
    return tidied(url)


def tidied(path: str) -> str:
    """The path as it is told: without empty names and `.`, and without `..` where that leads to the same place.

    URLs stay as they are, since any text can be a key in an object store.
    """
    if "://" in path or "::" in path or not path:
        return path
    root = "/" if path.startswith("/") else ""
    plain = root + "/".join(name for name in path.split("/") if name not in ("", ".")) or "."
    short = os.path.normpath(plain)
    if ".." not in plain.split("/") or has_magic(plain):
        return plain
    same = os.path.realpath(os.path.expanduser(short)) == os.path.realpath(os.path.expanduser(plain))
    return short if same else plain


def location_of(location: str) -> Location:
    """Where a path or URL leads. Of a chain, as `simplecache::s3://…`, that is what its last part names.

    Raises UsageError as `normal` does.
    """
    url = normal(location)
    if "::" in url:
        url = normal(url.rpartition("::")[2])
    scheme, mark, path = url.partition("://")
    if not mark:
        return Location("file", os.path.realpath(os.path.expanduser(url)))
    known = known_implementations.get(scheme, {}).get("class", scheme)
    with suppress(AttributeError, ImportError, TypeError, ValueError):  # which opening it tells
        path = str(get_filesystem_class(scheme)._strip_protocol(url))
    return Location(known, _without_detours(path))


def _without_detours(path: str) -> str:
    names: list[str] = []
    for name in path.split("/"):
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return "/" + "/".join(names)


def _refuse_without_directory(path: str) -> None:
    try:
        os.getcwd()
    except FileNotFoundError:
        raise UsageError(
            f"{path} is relative to the working directory, which was removed: change to another, or give a whole path"
        ) from None
