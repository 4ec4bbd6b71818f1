"""Whether an input is a table, and what is refused: files of tables that are named one by one, and other formats."""

from __future__ import annotations

import glob
import os
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from itertools import chain
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from ..errors import UsageError
from ..places import file_system
from ..stores import asked
from .delta import delta_files
from .iceberg import iceberg_files
from .live import Format, LiveFiles, path_of
from .marks import METADATA, formats_at, roots_in
from .titles import TITLES

_LISTERS = 16
"""Folders listed at a time."""


@dataclass(frozen=True)
class TableFolder:
    """A table that an input names."""

    format: Format

    filesystem: Any
    """Of fsspec."""

    folder: str
    """The path that `filesystem` knows it by."""

    metadata: str | None = None
    """File of Iceberg's metadata that the input names; None: the current one."""

    def live_files(self, version: int | None = None) -> LiveFiles:
        """The files of that version of a Delta table or snapshot of an Iceberg table, or of the current one.

        Raises UsageError if there is no such version or the package that reads the table is not installed; InputError
        if its files alone do not give its rows, or what describes it is damaged; InputAbsent if it has no file.
        """
        if self.format == "delta":
            return delta_files(self.filesystem, self.folder, version)
        return iceberg_files(self.filesystem, self.folder, self.metadata, version)


def table_at(path: str, options: Mapping[str, Any]) -> TableFolder | None:
    """The table at a path or URL; None where no table is. One file named by HTTP is taken as it is.

    Raises UsageError for a table of a format that is not read, and for what lies inside a table.
    """
    filesystem, root = file_system(path, options)
    if "http" in filesystem.protocol and not glob.has_magic(root):
        return None  # web servers have no folders
    filesystem.invalidate_cache()  # what an earlier run in this process saw may have changed
    with asked("list", path):
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
    if "delta" in here:  # beside it Iceberg's metadata may lie, which Delta's writer makes from its own log
        return TableFolder("delta", filesystem, root)
    return TableFolder("iceberg", filesystem, root) if "iceberg" in here else None


def refuse_parts_of_tables(path: str, filesystem: Any, files: Iterable[str], listed: Iterable[str]) -> None:
    """Raises UsageError if one of the files lies in a table, as a listing of all that lies beside and above them shows:
    a table keeps files there whose rows are deleted.
    """
    roots = roots_in(listed)
    if not roots:
        return
    for file in files:
        for folder in _above(file):
            if folder in roots:
                raise _part_of(path, filesystem, folder, roots[folder])


def refuse_parts_under(path: str, filesystem: Any, root: str, files: Iterable[str]) -> None:
    """The same of what the glob `root` matches, by a listing of each folder between its first wildcard and there."""
    files = list(files)
    fixed = _fixed(filesystem, root)
    folders = sorted({folder for file in files for folder in _above(file) if folder.startswith(f"{fixed}/")})

    def listed(folder: str) -> list[str]:
        with asked("list", path):
            names = [str(name).rstrip("/") for name in filesystem.ls(folder, detail=False)]
            inner = [filesystem.ls(name, detail=False) for name in names if name.endswith("/metadata")]
            return [*names, *chain.from_iterable(inner)]

    if folders:
        with ThreadPoolExecutor(min(_LISTERS, len(folders))) as pool:
            names = list(chain.from_iterable(pool.map(listed, folders)))
        refuse_parts_of_tables(path, filesystem, files, names)


def _part_of(path: str, filesystem: Any, folder: str, found: str) -> UsageError:
    what = f"input {path!r} takes in files of the {TITLES[found]} table {path_of(filesystem, folder)}"
    if found == "hudi":
        return UsageError(f"{what}, some of which may be deleted; edgemill does not read Hudi tables")
    return UsageError(f"{what}, some of which may be deleted: name the table's own folder as the input")


def _fixed(filesystem: Any, root: str) -> str:
    """The part of a path before its first wildcard; all of one that exists as it is."""
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
    """The folders that a path lies in, the nearest first; neither the root of a disk nor the host of a URL."""
    scheme, separator, rest = path.rpartition("://")
    parts = rest.rstrip("/").split("/")
    first = 2 if separator or not parts[0] else 1
    for length in range(len(parts) - 1, first - 1, -1):
        yield scheme + separator + "/".join(parts[:length])
