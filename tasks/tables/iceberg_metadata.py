"""Which file of an Iceberg table's metadata is the current one, where no catalog is asked."""

from __future__ import annotations

import re
from typing import Any

from ..errors import UsageError
from .marks import METADATA

__all__ = ["current_metadata", "newest_metadata"]

_HINT = "version-hint.text"
_NUMBERED = re.compile(r"(v?)(\d+)(?:-[^/]*?)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
"""v3.metadata.json of a table without a catalog, 00003-UUID.metadata.json of one with a catalog."""


def current_metadata(filesystem: Any, folder: str) -> str:
    """The file of the newest metadata. Raises UsageError if that is not clear."""
    inner = f"{folder.rstrip('/')}/metadata"
    names = [str(name).rpartition("/")[2] for name in filesystem.ls(inner, detail=False)]
    hint = filesystem.cat_file(f"{inner}/{_HINT}").decode("utf-8", "replace").strip() if _HINT in names else None
    try:
        return f"{inner}/{newest_metadata(names, hint)}"
    except ValueError as error:
        raise UsageError(
            f"it is not clear which metadata of the Iceberg table {folder} is the current one: {error}; "
            "ask its catalog, and name that file as the input"
        ) from error


def newest_metadata(names: list[str], hint: str | None = None) -> str:
    """Of the names in a folder `metadata`, that of the newest metadata, with what version-hint.text says.

    A writer that lost a race leaves a file of the same number as the winner's: only the catalog, or a hint that is a
    name, knows which is which. (A hint that is a number may be behind.) Raises ValueError if several could be it.
    """
    files = sorted(name for name in names if METADATA.fullmatch(name))
    numbered = {name: found for name in files if (found := _NUMBERED.fullmatch(name))}
    if len(files) == 1:
        return files[0]
    if len(numbered) < len(files) or len({found[1] for found in numbered.values()}) > 1:
        raise ValueError(f"its files are numbered in different ways: {', '.join(files[-4:])}")
    newest = max(int(found[2]) for found in numbered.values())
    could = [name for name, found in numbered.items() if int(found[2]) == newest]
    hinted = [name for name in files if hint in (name, name.removesuffix(".metadata.json"))]
    if hinted and hinted[0] not in could:
        raise ValueError(f"{_HINT} names {hinted[0]}, and {could[0]} is newer")
    if len(could) > 1 and not hinted:
        raise ValueError(f"{' and '.join(could)} have the same number")
    return (hinted or could)[0]
