"""Normal forms of paths and fsspec URLs, so that they can be compared.

A file on a disk is a path: `file://`, `file:`, `local://` and `local:` are removed. The scheme of a URL is in lower
case. URLs are not decoded, as in fsspec: `%20` is three characters.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass

from fsspec.core import has_magic
from fsspec.registry import get_filesystem_class, known_implementations

from ..errors import UsageError
from .passwords import without_passwords

_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*(?=://|::)")
_ON_DISK = re.compile("(file|local):(//)?", re.IGNORECASE)
_NO_FILES = re.compile("data:", re.IGNORECASE)


@dataclass(frozen=True)
class Location:
    """The location of a file or folder. Two locations of one file are equal, as far as their text tells."""

    system: str
    """`file`, or the class of its fsspec file system: the same for `s3://` and `s3a://`."""
    path: str
    """Absolute, without `.`, `..`, empty components and a final slash; on a disk, links are resolved."""

    def is_inside(self, folder: Location) -> bool:
        """Whether it is `folder` or inside of it."""
        return self.system == folder.system and f"{self.path}/".startswith(f"{folder.path.rstrip('/')}/")

    def overlaps(self, other: Location) -> bool:
        """Whether one of the two is the other or inside of it."""
        return self.is_inside(other) or other.is_inside(self)


def normalized(location: str) -> str:
    """The path or fsspec URL by which a location is opened and shown.

    Raises UsageError for a NUL, a data: URL, a URL without a path, and a relative path if the working directory was
    removed.
    """
    if "\0" in location:
        raise UsageError(f"{location!r} has a NUL character, which names of files and folders cannot have")
    if _NO_FILES.match(location):
        raise UsageError(f"{location[:40]!r} is a data: URL, not a file or folder: name one")
    url = _SCHEME.sub(lambda scheme: scheme[0].lower(), location)
    if "::" not in url:
        path = _ON_DISK.sub("", url, count=1) if _ON_DISK.match(url) else url
        if not path or ("://" in path and not path.partition("://")[2].strip("/")):
            raise UsageError(f"{without_passwords(location)!r} names no file or folder: add one")
        url = path
    if "://" in url:
        return url.rstrip("/")
    if not url.startswith(("/", "~")):
        _refuse_without_directory(url)
    return tidy_path(url)


def tidy_path(path: str) -> str:
    """The path without empty components and `.`, and without `..` where the result is the same folder.

    URLs are not changed, since any text can be a key in an object store.
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
    """The location of a path or URL. For a chain, such as `simplecache::s3://…`, that of its last part.

    Raises UsageError as `normalized` does.
    """
    url = normalized(location)
    if "::" in url:
        url = normalized(url.rpartition("::")[2])
    scheme, mark, path = url.partition("://")
    if not mark:
        return Location("file", os.path.realpath(os.path.expanduser(url)))
    known = known_implementations.get(scheme, {}).get("class", scheme)
    with suppress(AttributeError, ImportError, TypeError, ValueError):  # opening it raises a clear error
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
            f"{path} is relative to the working directory, which was removed: change to another, or use a whole path"
        ) from None
