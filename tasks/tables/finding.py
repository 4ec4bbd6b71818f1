"""Whether an input is a table, by the folders and files that mark one.

Single files of a table and tables of other formats are refused.
"""

from __future__ import annotations

import glob
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from ..errors import UsageError
from ..storage.folders import file_system
from ..storage.stores import store_errors
from . import TITLES
from .delta import delta_files
from .iceberg import METADATA, iceberg_files
from .live import Format, LiveFiles, path_of

_LISTERS = 16
"""Folders that are listed in parallel."""


@dataclass(frozen=True)
class TableFolder:
    """The folder of a table."""

    format: Format

    filesystem: Any
    """The fsspec file system."""

    folder: str
    """The path in `filesystem`."""

    metadata: str | None = None
    """The Iceberg metadata file that the input names; None for the current one."""

    def live_files(self, version: int | None = None) -> LiveFiles:
        """The files of a version of a Delta table or a snapshot of an Iceberg table; None is the current one.

        Raises UsageError if the version does not exist or the package that reads the table is not installed;
        InputError if the files have deleted rows or the metadata are damaged; InputAbsent if there is no file.
        """
        if self.format == "delta":
            return delta_files(self.filesystem, self.folder, version)
        return iceberg_files(self.filesystem, self.folder, self.metadata, version)


def table_at(path: str, options: Mapping[str, Any]) -> TableFolder | None:
    """The table at a path or URL; None if there is no table. A single file at an HTTP URL is never part of a table.

    Raises UsageError for a table of an unsupported format, and for a path inside a table.
    """
    filesystem, root = file_system(path, options)
    if "http" in filesystem.protocol and not glob.has_magic(root):
        return None  # web servers have no folders
    filesystem.invalidate_cache()  # files may have changed since an earlier run of this process
    with store_errors("list", path):
        named = METADATA.fullmatch(root.rpartition("/")[2]) is not None and filesystem.isfile(root)
        fixed = _fixed(filesystem, root)
    if named:
        return TableFolder("iceberg", filesystem, root.rpartition("/")[0].rpartition("/")[0], root)
    folders = list(dict.fromkeys(_with_all_above(filesystem, fixed)))
    marked = dict(zip(folders, formats_at(filesystem, folders, path), strict=True))
    here = marked.pop(fixed) if fixed == root else set()
    for folder, formats in marked.items():
        if formats:
            raise _part_of(path, filesystem, folder, sorted(formats)[0])
    if "hudi" in here:
        raise UsageError(
            f"input {path!r} is a Hudi table (it has .hoodie), which edgemill does not read: "
            "write its rows out as plain Parquet, or as a Delta or Iceberg table"
        )
    if "delta" in here:  # it may also have Iceberg metadata, which Delta's writer derives from its log
        return TableFolder("delta", filesystem, root)
    return TableFolder("iceberg", filesystem, root) if "iceberg" in here else None


def refuse_parts_of_tables(path: str, filesystem: Any, files: Iterable[str], listed: Iterable[str]) -> None:
    """Raises UsageError if one of the files is inside a table, whose folder also has files with deleted rows.

    `listed` are the paths of all files and folders around the files.
    """
    roots = roots_in(listed)
    if not roots:
        return
    for file in files:
        for folder in _above(file):
            if folder in roots:
                raise _part_of(path, filesystem, folder, roots[folder])


def refuse_parts_under(path: str, filesystem: Any, root: str, files: Iterable[str]) -> None:
    """As `refuse_parts_of_tables`, for matches of the glob `root`. Lists each folder below its first wildcard."""
    files = list(files)
    fixed = _fixed(filesystem, root)
    folders = sorted({folder for file in files for folder in _above(file) if folder.startswith(f"{fixed}/")})

    def listed(folder: str) -> list[str]:
        with store_errors("list", path):
            names = [str(name).rstrip("/") for name in filesystem.ls(folder, detail=False)]
            inner = [filesystem.ls(name, detail=False) for name in names if name.endswith("/metadata")]
            return [*names, *chain.from_iterable(inner)]

    if folders:
        with ThreadPoolExecutor(min(_LISTERS, len(folders))) as pool:
            names = list(chain.from_iterable(pool.map(listed, folders)))
        refuse_parts_of_tables(path, filesystem, files, names)


def _part_of(path: str, filesystem: Any, folder: str, table_format: str) -> UsageError:
    what = f"input {path!r} takes in files of the {TITLES[table_format]} table {path_of(filesystem, folder)}"
    if table_format == "hudi":
        return UsageError(f"{what}, some of which may be deleted; edgemill does not read Hudi tables")
    return UsageError(f"{what}, some of which may be deleted: name the table's own folder as the input")


def _fixed(filesystem: Any, root: str) -> str:
    """The part of a path before its first wildcard; the whole path if it exists literally."""
    if not glob.has_magic(root) or filesystem.exists(root):
        return root
    parts = root.split("/")
    return "/".join(parts[: next(number for number, part in enumerate(parts) if glob.has_magic(part))])


def _with_all_above(filesystem: Any, path: str) -> Iterator[str]:
    yield path
    yield from _above(path)
    if isinstance(filesystem, LocalFileSystem):  # a link may lead into a table
        yield from _above(os.path.realpath(path))


def _above(path: str) -> Iterator[str]:
    """The parent folders of a path, nearest first, without the root of a disk and the host of a URL."""
    scheme, separator, rest = path.rpartition("://")
    parts = rest.rstrip("/").split("/")
    first = 2 if separator or not parts[0] else 1
    for length in range(len(parts) - 1, first - 1, -1):
        yield scheme + separator + "/".join(parts[:length])


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
            match = _INSIDE.fullmatch(name)
            if match is not None:
                roots[match[1]] = _FOLDERS[match[2] or "metadata"]
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
