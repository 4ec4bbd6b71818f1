"""Versions of input files, to detect a file that is changed during a run."""

from __future__ import annotations

import os
from collections.abc import Mapping
from socket import gethostname
from typing import Any

import fsspec

from ..errors import InputError
from .stores import store_errors

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
