"""What tells a folder of a table from a folder of loose Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..stores import asked

METADATA = re.compile(r"[^/]+\.metadata\.json(\.gz)?")
"""The file names of Iceberg's metadata."""

_FOLDERS: Mapping[str, str] = {"_delta_log": "delta", "metadata": "iceberg", ".hoodie": "hudi"}
"""Folder that lies in the folder of a table → format of the table."""

_INSIDE = re.compile(rf"(.*)/(?:(_delta_log|\.hoodie)(?:/.*)?|metadata/{METADATA.pattern})", re.DOTALL)

_PROBES = 16
"""Folders looked for at a time; an object store takes two short requests for each."""


def formats_at(filesystem: Any, folders: Sequence[str], path: str) -> list[set[str]]:
    """The formats of table that each folder is marked as. Constant work for each, whatever it holds, unless it has a
    folder `metadata`, which is listed. A folder that may not be looked at has no marks. `path` is what a message names.

    Raises StoreLost, and UsageError for a store without credentials.
    """
    probes = [(folder, mark) for folder in folders for mark in _FOLDERS]
    if not probes:
        return []

    def probe(one: tuple[str, str]) -> bool:
        with asked("list", path):
            return _is_marked(filesystem, *one)

    with ThreadPoolExecutor(min(_PROBES, len(probes))) as pool:
        answers = dict(zip(probes, pool.map(probe, probes), strict=True))
    return [{name for mark, name in _FOLDERS.items() if answers[folder, mark]} for folder in folders]


def roots_in(names: Iterable[str]) -> dict[str, str]:
    """The folders of tables that a listing of files, and of folders, shows, with their formats."""
    roots: dict[str, str] = {}
    for name in names:
        if "/_delta_log" in name or "/.hoodie" in name or ".metadata.json" in name:  # most names need no pattern
            found = _INSIDE.fullmatch(name)
            if found is not None:
                roots[found[1]] = _FOLDERS[found[2] or "metadata"]
    return roots


def _is_marked(filesystem: Any, folder: str, mark: str) -> bool:
    marked = f"{folder.rstrip('/')}/{mark}"
    try:
        look = filesystem.isdir if "http" in filesystem.protocol else filesystem.info  # web servers answer any path
        there = bool(look(marked))
        if not there or mark != "metadata":
            return there
        names = filesystem.ls(marked, detail=False)
    except (OSError, ValueError):
        return False
    return any(METADATA.fullmatch(str(name).rpartition("/")[2]) for name in names)
