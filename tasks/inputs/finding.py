"""The files of an input, their common format, and whether their writer has marked them as complete."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from fsspec.implementations.local import LocalFileSystem

from ..errors import InputAbsent, InputError, InputIncomplete, UsageError
from ..storage.folders import Folder, file_system, folder_at
from ..storage.stores import store_errors
from ..tables.finding import refuse_parts_of_tables, refuse_parts_under, table_at
from ..tables.live import LiveFiles
from .formats.input_format import compression_of, every_format, format_named_by, format_names, format_of_bytes
from .formats.lines import decompressed
from .formats.unread import why_content_not_read, why_not_read
from .opening import READ_ERRORS


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


_HEAD_BYTES = 2**16
_NAMED = 3
"""Files of each format that a message names."""


@dataclass(frozen=True)
class FoundFiles:
    """The files of an input."""

    root: str
    """The folder below which paths may name Hive partitions, spelt as in `paths`; "" for a single file."""
    paths: list[str]
    """Absolute paths or URLs, sorted; at least one."""
    format: str


def find_input(
    path: str | Sequence[str], options: Mapping[str, Any], format: str, table_version: int | None
) -> tuple[str, FoundFiles, LiveFiles | None]:
    """The files of one path or several, and the live files if the path is a table. The paths, joined, come first.

    Raises UsageError for a `table_version` without a table, or several paths of which one is a table; and as
    `find_files` and `table_at` do.
    """
    if isinstance(path, str):
        table = table_at(path, options)
        if table is not None:
            live = table.live_files(table_version)
            return path, FoundFiles(live.table.location, list(live.paths), "parquet"), live
        found = find_files(path, options, format)
    else:
        for one in path:
            if table_at(one, options) is not None:
                raise UsageError(f"input {one!r} is a table, which must be the only input: leave out the other paths")
        found = find_all_files(path, options, format)
        path = ", ".join(path)
    if table_version is not None:
        raise UsageError(f"input.table_version is {table_version}, but input {path!r} is no Delta or Iceberg table")
    return path, found, None


def find_files(path: str, options: Mapping[str, Any], format_choice: str = "auto") -> FoundFiles:
    """The files of a file, folder, glob or fsspec URL, which must have one format. A folder is searched at any depth;
    names that start with "." or "_" are skipped.

    Raises InputAbsent, an InputError, if nothing is found; InputError for files of several formats, or of a format that
    edgemill does not read; UsageError for a part of a table.
    """
    filesystem, root = file_system(path, options)
    filesystem.invalidate_cache()  # files may have changed since an earlier run of this process
    try:
        with store_errors("list", path):
            names, format = _expand(filesystem, path, root, format_choice)
    except FileNotFoundError:
        raise InputAbsent(f"input {path!r} does not exist") from None
    except OSError as error:
        raise InputError(f"input {path!r} cannot be listed: {error}") from error
    if not isinstance(filesystem, LocalFileSystem):
        names, root = [filesystem.unstrip_protocol(name) for name in names], filesystem.unstrip_protocol(root)
    return FoundFiles(root, list(names), format)


def find_all_files(paths: Sequence[str], options: Mapping[str, Any], format_choice: str = "auto") -> FoundFiles:
    """The files of several paths, without duplicates. Raises as `find_files` does."""
    found = [find_files(path, options, format_choice) for path in paths]
    by_format: dict[str, list[str]] = {}
    for own in found:
        by_format.setdefault(own.format, []).extend(own.paths)
    if len(by_format) > 1:
        raise InputError(_mixed(", ".join(paths), by_format))
    return FoundFiles("", sorted({path for own in found for path in own.paths}), found[0].format)


def _expand(filesystem: Any, path: str, root: str, format_choice: str) -> tuple[list[str], str]:
    if filesystem.isfile(root):
        return [root], _format_of(filesystem, path, [root], format_choice)
    if filesystem.isdir(root):
        found, format = _in_folder(filesystem, path, root, format_choice)
        if not found or format is None:
            raise InputAbsent(_empty(path, format_choice))
        return found, format
    if not any(mark in root for mark in "*?["):
        raise InputAbsent(f"input {path!r} does not exist")
    matches = [name for name in filesystem.glob(root) if not PurePosixPath(name).name.startswith((".", "_"))]
    refuse_parts_under(path, filesystem, root, matches)
    files: list[str] = []
    formats: list[str] = []
    for name in matches:
        if filesystem.isdir(name):
            inner, own = _in_folder(filesystem, path, name, format_choice)
            files += inner
            formats += [own] if own is not None else []
        else:
            files.append(name)
    if not files:
        raise InputAbsent(f"no file matches input {path!r}")
    files = sorted(set(files))
    return files, _format_of(filesystem, path, files, format_choice)


def _in_folder(filesystem: Any, path: str, folder: str, format_choice: str) -> tuple[list[str], str | None]:
    """The files of a folder that may hold edges, and their format; an empty list and None if there is no such file."""

    def visible(name: str) -> bool:
        return not any(part.startswith((".", "_")) for part in PurePosixPath(name).relative_to(folder).parts)

    listed = filesystem.find(folder)
    names = sorted(name for name in listed if visible(name))
    named = [name for name in names if format_named_by(name) is not None]
    strong = [name for name in named if format_named_by(name, of_data_alone=True) is not None]
    weak = [name for name in named if format_named_by(name, of_data_alone=True) is None]
    found, format = strong or weak, None
    if format_choice != "auto":
        own = [name for name in [*strong, *weak] if format_named_by(name) == format_choice]
        found, format = sorted(own) or [name for name in names if format_named_by(name) is None], format_choice
    elif found:
        format = _one_format(path, found) if strong else _marked(filesystem, found[0]) or _one_format(path, found)
    else:
        _refuse_unread(names)
    refuse_parts_of_tables(path, filesystem, found, listed)
    return found, format


def _format_of(filesystem: Any, path: str, files: Sequence[str], format_choice: str) -> str:
    """The one format of files that the user named, or that match a glob. Raises InputError."""
    if format_choice != "auto":
        return format_choice
    unnamed = [name for name in files if format_named_by(name) is None]
    if not unnamed:
        format = _one_format(path, files)
        is_sure = format_named_by(files[0], of_data_alone=True) is not None
        return format if is_sure else _marked(filesystem, files[0]) or format
    head, whole = _head(filesystem, unnamed[0])
    detected = format_of_bytes(head)
    if detected is None:
        if (why := why_content_not_read(unnamed[0], head, whole)) is not None:
            raise InputError(why)
        _refuse_unread(unnamed)
        raise InputError(
            f"cannot tell the format of {unnamed[0]}: its name has no suffix that says so; "
            f"name it with --input-format: {', '.join(format_names()[:-1])} or {format_names()[-1]}"
        )
    named = [name for name in files if name not in set(unnamed)]
    if named and _one_format(path, named) != detected:
        raise InputError(_mixed(path, {detected: unnamed, _one_format(path, named): named}))
    return detected


def _marked(filesystem: Any, name: str) -> str | None:
    """The format that the first bytes of a file mean; None for other text."""
    return format_of_bytes(_head(filesystem, name)[0])


def _head(filesystem: Any, name: str) -> tuple[bytes, bool]:
    """The first bytes of a file, and whether it has no further ones; none if they cannot be decompressed."""
    with filesystem.open(name, "rb") as file:
        try:
            head = decompressed(file, compression_of(name)).read(_HEAD_BYTES)
        except READ_ERRORS:
            return b"", False
    return head, len(head) < _HEAD_BYTES


def _one_format(path: str, files: Sequence[str]) -> str:
    by_format: dict[str, list[str]] = {}
    for name in files:
        format = format_named_by(name)
        assert format is not None  # files of an unknown format were left out
        by_format.setdefault(format, []).append(name)
    if len(by_format) > 1:
        raise InputError(_mixed(path, by_format))
    return next(iter(by_format))


def _mixed(path: str, by_format: Mapping[str, Sequence[str]]) -> str:
    def some(names: Sequence[str]) -> str:
        shown = ", ".join(PurePosixPath(name).name for name in names[:_NAMED])
        return shown + (", …" if len(names) > _NAMED else "")

    counted = " and ".join(f"{len(names):,} {format} ({some(names)})" for format, names in sorted(by_format.items()))
    return f"input {path!r} has files of several formats: {counted}; say which to read with --input-format"


def _refuse_unread(names: Sequence[str]) -> None:
    for name in names:
        if (why := why_not_read(name)) is not None:
            raise InputError(why)


def _empty(path: str, format_choice: str) -> str:
    if format_choice not in ("auto", "parquet"):
        return f"input {path!r} is a folder without {format_choice} files"
    titles = [own.title for name, own in every_format().items() if name != "parquet"]
    others = "" if format_choice == "parquet" else f", and without {', '.join(titles[:-1])} or {titles[-1]} files"
    return f"input {path!r} is a folder without *.parquet files{others}"
