"""The files that an input names, and their common format."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Self

from fsspec.implementations.local import LocalFileSystem

from ..errors import InputAbsent, InputError
from ..places import file_system
from ..stores import asked
from ..tables.finding import refuse_parts_of_tables, refuse_parts_under
from ..tables.live import LiveFiles
from .form import FormatChoice
from .formats import (
    DATA_SUFFIXES,
    OTHER_SUFFIXES,
    Format,
    format_named_by,
    format_of_bytes,
    suffix_of,
    why_not_read,
)

__all__ = ["Found", "find_all_files", "find_files"]

_HEAD_BYTES = 8
_NAMED = 3
"""Files named in a message, of each format."""


class Found:
    """The files of an input."""

    @classmethod
    def of(cls, live: LiveFiles) -> Self:
        """The files of a table."""
        return cls(live.table.location, live.paths, "parquet")

    def __init__(self, root: str, paths: Sequence[str], format: Format) -> None:
        self.root = root
        """The folder below which paths may name partitions, as the paths have it; "" for a single file."""
        self.paths = list(paths)
        """Absolute paths or URLs, sorted, one at least."""
        self.format = format


def find_files(path: str, options: Mapping[str, Any], asked_format: FormatChoice = "auto") -> Found:
    """The files of a file, folder, glob or fsspec URL, which must be of one format. A folder is searched at any depth;
    names that start with "." or "_" are left out.

    Raises InputAbsent, an InputError, if nothing is found; InputError for files of several formats, or of one that is
    not read; UsageError for a part of a table.
    """
    filesystem, root = file_system(path, options)
    filesystem.invalidate_cache()  # what an earlier run in this process saw may have changed
    try:
        with asked("list", path):
            names, format = _expand(filesystem, path, root, asked_format)
    except FileNotFoundError:
        raise InputAbsent(f"input {path!r} does not exist") from None
    except OSError as error:
        raise InputError(f"input {path!r} cannot be listed: {error}") from error
    if not isinstance(filesystem, LocalFileSystem):
        names, root = [filesystem.unstrip_protocol(name) for name in names], filesystem.unstrip_protocol(root)
    return Found(root, names, format)


def find_all_files(paths: Sequence[str], options: Mapping[str, Any], asked_format: FormatChoice = "auto") -> Found:
    """The files of several paths, each once. Raises as `find_files` does."""
    found = [find_files(path, options, asked_format) for path in paths]
    by_format: dict[Format, list[str]] = {}
    for own in found:
        by_format.setdefault(own.format, []).extend(own.paths)
    if len(by_format) > 1:
        raise InputError(_mixed(", ".join(paths), by_format))
    return Found("", sorted({path for own in found for path in own.paths}), found[0].format)


def _expand(filesystem: Any, path: str, root: str, asked_format: FormatChoice) -> tuple[list[str], Format]:
    if filesystem.isfile(root):
        return [root], _format_of(filesystem, path, [root], asked_format)
    if filesystem.isdir(root):
        found, format = _in_folder(filesystem, path, root, asked_format)
        if not found or format is None:
            raise InputAbsent(_empty(path, asked_format))
        return found, format
    if not any(mark in root for mark in "*?["):
        raise InputAbsent(f"input {path!r} does not exist")
    matches = [name for name in filesystem.glob(root) if not PurePosixPath(name).name.startswith((".", "_"))]
    refuse_parts_under(path, filesystem, root, matches)
    files: list[str] = []
    formats: list[Format] = []
    for name in matches:
        if filesystem.isdir(name):
            inner, own = _in_folder(filesystem, path, name, asked_format)
            files += inner
            formats += [own] if own is not None else []
        else:
            files.append(name)
    if not files:
        raise InputAbsent(f"no file matches input {path!r}")
    files = sorted(set(files))
    return files, _format_of(filesystem, path, files, asked_format)


def _in_folder(filesystem: Any, path: str, folder: str, asked_format: FormatChoice) -> tuple[list[str], Format | None]:
    """The files of a folder that hold edges, and their format; none of either if there are none."""

    def visible(name: str) -> bool:
        return not any(part.startswith((".", "_")) for part in PurePosixPath(name).relative_to(folder).parts)

    listed = filesystem.find(folder)
    names = sorted(name for name in listed if visible(name))
    strong = [name for name in names if suffix_of(name) in DATA_SUFFIXES]
    weak = [name for name in names if suffix_of(name) in OTHER_SUFFIXES]
    found, format = strong or weak, None
    if asked_format != "auto":
        own = [name for name in [*strong, *weak] if format_named_by(name) == asked_format]
        found, format = sorted(own) or [name for name in names if format_named_by(name) is None], asked_format
    elif found:
        format = _one_format(path, found)
    else:
        _refuse_unread(names)
    refuse_parts_of_tables(path, filesystem, found, listed)
    return found, format


def _format_of(filesystem: Any, path: str, files: Sequence[str], asked_format: FormatChoice) -> Format:
    """The one format of files that were named, or matched. Raises InputError."""
    if asked_format != "auto":
        return asked_format
    unnamed = [name for name in files if format_named_by(name) is None]
    if not unnamed:
        return _one_format(path, files)
    _refuse_unread(unnamed)
    with filesystem.open(unnamed[0], "rb") as file:
        told = format_of_bytes(file.read(_HEAD_BYTES))
    if told is None:
        raise InputError(
            f"cannot tell the format of {unnamed[0]}: its name has no suffix that says so; "
            "name it with --input-format: parquet, csv, tsv, jsonl or arrow"
        )
    named = [name for name in files if name not in set(unnamed)]
    if named and _one_format(path, named) != told:
        raise InputError(_mixed(path, {told: unnamed, _one_format(path, named): named}))
    return told


def _one_format(path: str, files: Sequence[str]) -> Format:
    by_format: dict[Format, list[str]] = {}
    for name in files:
        format = format_named_by(name)
        assert format is not None  # others were sorted out
        by_format.setdefault(format, []).append(name)
    if len(by_format) > 1:
        raise InputError(_mixed(path, by_format))
    return next(iter(by_format))


def _mixed(path: str, by_format: Mapping[Format, Sequence[str]]) -> str:
    def some(names: Sequence[str]) -> str:
        shown = ", ".join(PurePosixPath(name).name for name in names[:_NAMED])
        return shown + (", …" if len(names) > _NAMED else "")

    counted = " and ".join(f"{len(names):,} {format} ({some(names)})" for format, names in sorted(by_format.items()))
    return f"input {path!r} has files of several formats: {counted}; say which to read with --input-format"


def _refuse_unread(names: Sequence[str]) -> None:
    for name in names:
        if (why := why_not_read(name)) is not None:
            raise InputError(why)


def _empty(path: str, asked_format: FormatChoice) -> str:
    if asked_format not in ("auto", "parquet"):
        return f"input {path!r} is a folder without {asked_format} files"
    others = "" if asked_format == "parquet" else ", and without CSV, TSV, JSON lines or Arrow files"
    return f"input {path!r} is a folder without *.parquet files{others}"
