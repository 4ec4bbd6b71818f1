"""Opening of input files in the version that was inspected, and errors of reading them.

The version of a file is its size and what its disk or store says of its last change. A file that has changed since its
head was read is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from socket import gethostname
from typing import Any

import fsspec
import pyarrow as pa

from ..errors import InputError
from ..storage.stores import store_errors

_VERSION_KEYS = (
    "generation",
    *("ETag", "etag", "e_tag", "Content-MD5", "content_md5", "md5Hash", "Digest"),
    *("mtime", "Last-Modified", "last_modified", "LastModified", "updated", "modificationTime", "created"),
)
"""Keys for a content digest or a write time in fsspec's information about a file. The first that is present counts:
a listing may have fewer keys than a request for one file.
"""


def size_and_version(path: str, storage_options: Mapping[str, Any]) -> tuple[int, str | None]:
    """The size in bytes of a file, and its version: size, time and inode on a disk; in a store a digest or a time, or
    None if it has neither. Raises OSError, and errors as `store_errors` does.
    """
    if "://" not in path:
        found = os.stat(path)
        return found.st_size, _of_disk(found)
    with store_errors("look at", path):
        system, name = fsspec.core.url_to_fs(path, **storage_options)
        info = system.info(name)
        return int(info["size"]), _of_store(info)


def refuse_changed(
    path: str, version: str | None, storage_options: Mapping[str, Any], descriptor: int | None = None
) -> None:
    """Raises InputError if a file was removed or no longer has this `version`; None accepts any version.

    `descriptor` is the file descriptor of the open file on a disk; without it, the storage is asked again.
    """
    host = "" if "://" in path else f", or the host {gethostname()} has another or none"
    try:
        if "://" not in path:
            now: str | None = _of_disk(os.stat(path if descriptor is None else descriptor))
        else:
            with store_errors("look at", path):
                system, name = fsspec.core.url_to_fs(path, **storage_options)
                system.invalidate_cache(name)
                now = _of_store(system.info(name))
    except FileNotFoundError:
        raise InputError(f"{path} was removed during the run{host}; run again when the input is complete") from None
    except OSError as error:
        raise InputError(
            f"the version of {path} cannot be read any more: {error.strerror or error}; run again"
        ) from error
    if version is not None and now != version:
        raise InputError(
            f"{path} changed during the run: it was replaced or written to{host}; "
            "run again when the input does not change"
        )


def _of_disk(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _of_store(info: Mapping[str, Any]) -> str | None:
    version = next((str(info[name]) for name in _VERSION_KEYS if info.get(name)), None)
    if version is None:
        return None
    content = version.strip('"')  # some stores quote it in some answers only
    return f"{info.get('size')} {content}"


READ_ERRORS = (pa.ArrowException, OSError, ValueError, EOFError)
"""What pyarrow raises for a damaged file, or one of another format."""


def error_reason(error: BaseException) -> str:
    """The first line of an error, without a full stop."""
    return str(error).partition("\n")[0].rstrip(". ") or type(error).__name__


@contextmanager
def open_bytes(path: str, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """Open the file at a path or URL to read bytes. Raises READ_ERRORS, and errors as `store_errors` does."""
    with (
        store_errors("read", path),
        fsspec.open(path, "rb", **storage_options).open() if "://" in path else pa.OSFile(path) as file,
    ):
        yield file


@contextmanager
def open_version(path: str, version: str | None, storage_options: Mapping[str, Any]) -> Iterator[Any]:
    """As `open_bytes`. Raises InputError if the file is not of this `version` before or after it was read.

    On a disk the version of the open file descriptor is compared, so a file renamed to `path` meanwhile is not read.
    """
    descriptor = None
    try:
        with open_bytes(path, storage_options) as opened:
            descriptor = None if "://" in path else opened.fileno()
            if descriptor is not None:
                refuse_changed(path, version, storage_options, descriptor)
            yield opened
            refuse_changed(path, version, storage_options, descriptor)
    except READ_ERRORS:
        refuse_changed(path, version, storage_options)
        raise
