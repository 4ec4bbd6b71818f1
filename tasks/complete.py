"""Whether an input is complete, as a file says that its writer leaves beside it when all is there."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from typing import Any

from .errors import InputIncomplete
from .places import Place, place_of

__all__ = ["refuse_unmarked"]


def refuse_unmarked(path: str, marker: str, storage_options: Mapping[str, Any] | None = None) -> None:
    """Raises InputIncomplete unless the file `marker` lies in the folder of the input `path`.

    That is the folder itself, the one that holds a single file, or the one before the first wildcard of a glob.
    """
    folder = _folder(place_of(path, storage_options))
    with folder.reached("look for", marker):
        folder.files.invalidate_cache()
        if folder.files.isfile(folder.path(marker)):
            return
    raise InputIncomplete(f"input {path!r} is not complete: {folder}/{marker} is not there; run again when it is")


def _folder(place: Place) -> Place:
    with place.reached("look at"):
        if place.files.isdir(place.path()):
            return place
        exists = place.files.exists(place.path())
    parts = place.url.split("/")
    if exists:
        at = len(parts) - 1
    else:  # a glob, or what is yet to come
        at = next((number for number, part in enumerate(parts) if glob.has_magic(part)), len(parts))
    return Place("/".join(parts[:at]) or ("/" if place.url.startswith("/") else "."), place.options)
