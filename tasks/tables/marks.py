"""How the folder of a table differs from a folder of plain Parquet files."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ..storage.stores import store_errors

METADATA = re.compile(r"[^/]+\.metadata\.json(\.gz)?")
"""File names of Iceberg metadata."""

_FOLDERS: Mapping[str, str] = {"_delta_log": "delta", "metadata": "iceberg", ".hoodie": "hudi"}
"""Folder inside the folder of a table → format of the table."""

_INSIDE = re.compile(rf"(.*)/(?:(_delta_log|\.hoodie)(?:/.*)?|metadata/{METADATA.pattern})", re.DOTALL)

_PROBES = 16
"""Folders that are looked for in parallel. Each takes two short requests in an object store."""


def formats_at(filesystem: Any, folders: Sequence[str], path: str) -> list[set[str]]:
    """[folders] the table formats of each folder. A folder that cannot be read has none; `path` is for messages.

    A folder `metadata` inside of a folder is listed; else the cost for each folder is constant. Raises StoreLost, and
    UsageError for missing credentials.
    """
    probes = [(folder, mark) for folder in folders for mark in _FOLDERS]
    if not probes:
        return []

    def probe(one: tuple[str, str]) -> bool:
        with store_errors("list", path):
            return _is_marked(filesystem, *one)

    with ThreadPoolExecutor(min(_PROBES, len(probes))) as pool:
        answers = dict(zip(probes, pool.map(probe, probes), strict=True))
    return [{name for mark, name in _FOLDERS.items() if answers[folder, mark]} for folder in folders]


def roots_in(names: Iterable[str]) -> dict[str, str]:
    """Folder of a table → its format, of all tables in a listing of files and folders."""
    roots: dict[str, str] = {}
    for name in names:
        if "/_delta_log" in name or "/.hoodie" in name or ".metadata.json" in name:  # fast: most names match none
            found = _INSIDE.fullmatch(name)
            if found is not None:
                roots[found[1]] = _FOLDERS[found[2] or "metadata"]
    return roots


def _is_marked(filesystem: Any, folder: str, mark: str) -> bool:
    marked = f"{folder.rstrip('/')}/{mark}"
    try:
        look = (
            filesystem.isdir if "http" in filesystem.protocol else filesystem.info
        )  # a web server has information on any path
        there = bool(look(marked))
        if not there or mark != "metadata":
            return there
        names = filesystem.ls(marked, detail=False)
    except (OSError, ValueError):
        return False
    return any(METADATA.fullmatch(str(name).rpartition("/")[2]) for name in names)
