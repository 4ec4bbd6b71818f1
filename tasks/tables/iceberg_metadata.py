"""The current metadata file of an Iceberg table, without a catalog."""

from __future__ import annotations

import re
from typing import Any

from ..errors import UsageError
from .marks import METADATA

_HINT = "version-hint.text"
_NUMBERED = re.compile(r"(v?)(\d+)(?:-[^/]*?)?(?:\.gz)?\.metadata\.json(?:\.gz)?")
"""v3.metadata.json in a table without a catalog, 00003-UUID.metadata.json in one with a catalog."""


def current_metadata(filesystem: Any, folder: str) -> str:
    """The newest metadata file. Raises UsageError if it is ambiguous."""
    inner = f"{folder.rstrip('/')}/metadata"
    names = [str(name).rpartition("/")[2] for name in filesystem.ls(inner, detail=False)]
    hint = filesystem.cat_file(f"{inner}/{_HINT}").decode("utf-8", "replace").strip() if _HINT in names else None
    try:
        return f"{inner}/{newest_metadata(names, hint)}"
    except ValueError as error:
        raise UsageError(
            f"the current metadata file of the Iceberg table {folder} is ambiguous: {error}; "
            "find it in the table's catalog, and use this file as the input"
        ) from error


def newest_metadata(names: list[str], hint: str | None = None) -> str:
    """The newest metadata file among the names in a folder `metadata`; `hint` is the content of version-hint.text.

    A writer that lost a race leaves a file with the same number as the winner. Only the catalog, or a hint that is a
    name, tells which one counts; a hint that is a number may be outdated. Raises ValueError if it is ambiguous.
    """
    files = sorted(name for name in names if METADATA.fullmatch(name))
    numbered = {name: found for name in files if (found := _NUMBERED.fullmatch(name))}
    if len(files) == 1:
        return files[0]
    if len(numbered) < len(files) or len({found[1] for found in numbered.values()}) > 1:
        raise ValueError(f"its files are numbered in different ways: {', '.join(files[-4:])}")
    newest = max(int(found[2]) for found in numbered.values())
    candidates = [name for name, found in numbered.items() if int(found[2]) == newest]
    hinted = [name for name in files if hint in (name, name.removesuffix(".metadata.json"))]
    if hinted and hinted[0] not in candidates:
        raise ValueError(f"{_HINT} names {hinted[0]}, and {candidates[0]} is newer")
    if len(candidates) > 1 and not hinted:
        raise ValueError(f"{' and '.join(candidates)} have the same number")
    return (hinted or candidates)[0]
