"""Whether an input is complete: its writer adds a marker file, such as `_SUCCESS`, when all files are written."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from typing import Any

from ..errors import InputIncomplete
from ..storage.folders import Folder, folder_at


def refuse_unmarked(path: str, marker: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Raises InputIncomplete unless the folder of the input `path` has the file `marker`.

    The folder is `path` itself, the folder of a single file, or that before the first wildcard of a glob.
    """
    folder = _folder(folder_at(path, storage_options))
    with folder.store_errors("look for", marker):
        folder.files.invalidate_cache()
        if folder.files.isfile(folder.path(marker)):
            return
    raise InputIncomplete(f"input {path!r} is not complete: {folder}/{marker} is not there; run again when it is")


def _folder(source: Folder) -> Folder:
    with source.store_errors("look at"):
        if source.files.isdir(source.path()):
            return source
        exists = source.files.exists(source.path())
    parts = source.url.split("/")
    if exists:
        end = len(parts) - 1
    else:  # a glob, or a path that does not exist yet
        end = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Folder("/".join(parts[:end]) or ("/" if source.url.startswith("/") else "."), source.options)
