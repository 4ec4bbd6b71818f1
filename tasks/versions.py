"""Which version of a file a storage holds, so that a file that is replaced during a run is noticed."""

from __future__ import annotations

import os
from collections.abc import Mapping
from socket import gethostname
from typing import Any

import fsspec

from .errors import InputError
from .stores import asked

__all__ = ["look_at", "refuse_changed"]

_TELLING = (
    "generation",
    *("ETag", "etag", "e_tag", "Content-MD5", "content_md5", "md5Hash", "Digest"),
    *("mtime", "Last-Modified", "last_modified", "LastModified", "updated", "modificationTime", "created"),
)
"""What storages call what they know of a file's content, or of the time when it was written; the first is taken that
is there, as a listing may have fewer of them than an answer about one file.
"""


def look_at(path: str, storage_options: Mapping[str, Any]) -> tuple[int, str | None]:
    """The size of a file, and its version: size, time and inode on a disk, else a digest or a time; None where the
    storage tells neither. Raises OSError, and what `asked` does.
    """
    if "://" not in path:
        found = os.stat(path)
        return found.st_size, _of_disk(found)
    with asked("look at", path):
        system, name = fsspec.core.url_to_fs(path, **storage_options)
        info = system.info(name)
        return int(info["size"]), _of_store(info)


def refuse_changed(
    path: str, version: str | None, storage_options: Mapping[str, Any], descriptor: int | None = None
) -> None:
    """Raises InputError if a file is not the version any more that it was, or is gone. Storage is asked anew; of a file
    on a disk that is open, `descriptor` is asked. None is any version.
    """
    host = "" if "://" in path else f", or the host {gethostname()} has another or none"
    try:
        if "://" not in path:
            now: str | None = _of_disk(os.stat(path if descriptor is None else descriptor))
        else:
            with asked("look at", path):
                system, name = fsspec.core.url_to_fs(path, **storage_options)
                system.invalidate_cache(name)
                now = _of_store(system.info(name))
    except FileNotFoundError:
        raise InputError(
            f"{path} is gone: it was removed during the run{host}; run again when the input is complete"
        ) from None
    except OSError as error:
        raise InputError(f"{path} cannot be looked at any more: {error.strerror or error}; run again") from error
    if version is not None and now != version:
        raise InputError(
            f"{path} changed during the run: it was replaced or written to{host}; "
            "run again when nobody writes to the input"
        )


def _of_disk(found: os.stat_result) -> str:
    return f"{found.st_size} {found.st_mtime_ns} {found.st_ino}"


def _of_store(info: Mapping[str, Any]) -> str | None:
    told = next((str(info[name]) for name in _TELLING if info.get(name)), None)
    if told is None:
        return None
    content = told.strip('"')  # some stores quote it in one place and not in another
    return f"{info.get('size')} {content}"
