"""Partitioned inputs: column values in the folders of a path, as Hive writes them (`dt=2026-11-01/`).

A file that no row can match by these values is not read (partition pruning).
"""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import compress
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

from ..errors import InputError, clipped
from ..tables.live import LiveFiles
from ..where.condition import Both, ColumnName, Compared, Condition, Constant, Like, Node, Not, refused
from ..where.expression import cannot_match
from .finding import FoundFiles

_NULL = "__HIVE_DEFAULT_PARTITION__"
_PART = re.compile(r"([^/=]+)=([^/]*)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"0|[1-9][0-9]{0,17}")
"""An integer as it prints, of at most 18 digits."""
_NUMBER = re.compile(r"[-+]?[\w.]+")


def texts_of_path(root: str, path: str) -> dict[str, str | None]:
    """Column → value as text, for each folder `column=value` between `root` and the file; None is null."""
    inner = path[len(root) :] if root and path.startswith(root) else path
    found: dict[str, str | None] = {}
    for folder in inner.split("/")[:-1]:
        part = _PART.fullmatch(folder)
        if part is not None:
            name, text = unquote(part[1]), unquote(part[2])
            found[name] = None if text == _NULL else text
    return found


def partition_types(
    files: Sequence[Mapping[str, str | None]], condition: Condition | None = None
) -> dict[str, pa.DataType]:
    """Column → a type for the values of all files: int64 if each is written as an integer prints, date32 if each is a
    day, else string. It is also string if all that the condition asks is which texts the values equal or are like.

    Raises UsageError for a column of text that the condition compares with a number, and for one of integers that it
    compares with a text.
    """
    values: dict[str, list[str]] = {}
    for file in files:
        for name, text in file.items():
            own = values.setdefault(name, [])
            if text is not None:
                own.append(text)
    types = {name: _type(texts) for name, texts in values.items()}
    if condition is None:
        return types
    return {name: _type_in(condition, name, kind, values[name]) for name, kind in types.items()}


def _type_in(condition: Condition, name: str, kind: pa.DataType, texts: Sequence[str]) -> pa.DataType:
    """The type of a column for a condition."""
    uses = list(_uses(condition.root, name))
    if pa.types.is_integer(kind) and uses and all(asks_for_text for _, asks_for_text in uses):
        return pa.string()
    for literal in (literal for literal, _ in uses if literal is not None):
        is_text = isinstance(literal.value, str)
        if pa.types.is_integer(kind) and is_text:
            why = f"the folders {name}=… have whole numbers: write {clipped(str(literal.value))} without quotes"
            raise refused(condition.text, literal.at, why)
        if pa.types.is_string(kind) and not is_text and not isinstance(literal.value, bool):
            other = next((text for text in texts if not _WHOLE.fullmatch(text)), "")
            written = _NUMBER.match(condition.text, literal.at)
            advice = f"write '{written[0] if written else literal.value}'"
            raise refused(
                condition.text, literal.at, f"the folders {name}=… have text, such as {clipped(other)!r}: {advice}"
            )
    return kind


def _uses(node: Node, name: str) -> Iterator[tuple[Constant | None, bool]]:
    """For each comparison of a column: the literal, if any, and whether it asks which texts the values equal."""
    match node:
        case Both(_, parts):
            for part in parts:
                yield from _uses(part, name)
        case Not(inner):
            yield from _uses(inner, name)
        case Like(column, _) if column.name == name:
            yield None, True
        case Compared(left, operator, right):
            for own, other in ((left, right), (right, left)):
                if isinstance(own, ColumnName) and own.name == name:
                    literal = other if isinstance(other, Constant) else None
                    is_text = literal is not None and isinstance(literal.value, str)
                    yield literal, is_text and operator in ("=", "!=")


def partition_values(texts: Mapping[str, str | None], types: Mapping[str, pa.DataType]) -> dict[str, Any]:
    """Column → value of one file, with these types; None for a column that is not in its path."""
    return {name: _value(texts.get(name), kind) for name, kind in types.items()}


def _type(texts: Sequence[str]) -> pa.DataType:
    if texts and all(_WHOLE.fullmatch(text) for text in texts):
        return pa.int64()
    if texts and all(_is_day(text) for text in texts):
        return pa.date32()
    return pa.string()


def _is_day(text: str) -> bool:
    try:
        return bool(_DAY.fullmatch(text) and datetime.date.fromisoformat(text))
    except ValueError:
        return False


def _value(text: str | None, kind: pa.DataType) -> Any:
    if text is None or pa.types.is_string(kind):
        return text
    return int(text) if pa.types.is_integer(kind) else datetime.date.fromisoformat(text)


@dataclass(frozen=True)
class PrunedFiles:
    """Files that may match, and column values from their paths."""

    paths: tuple[str, ...]

    constants: tuple[Mapping[str, Any], ...]
    """[paths] column of the condition → its value in the path."""

    types: Mapping[str, pa.DataType]
    """Types of these columns."""

    left_out: int
    """Number of files in which no row can match the condition."""

    others: tuple[str, ...] = ()
    """Columns with values in the paths that are not in the condition."""


def prune_files(found: FoundFiles, condition: Condition | None, live: LiveFiles | None) -> PrunedFiles:
    """The files to read. Raises InputError if no file may match, UsageError if the condition does not fit the types.

    Values come from Hive's folders `column=value` below the input's folder; in a Delta table, from folders of its
    partition columns. Iceberg files have these columns themselves.
    """
    if condition is None or (live is not None and live.table.format == "iceberg"):
        return PrunedFiles(tuple(found.paths), ({},) * len(found.paths), {}, 0)
    named = _names_in_paths(condition, live)
    in_paths = [texts_of_path(found.root, path) for path in found.paths]
    texts = [{name: text for name, text in own.items() if name in named} for own in in_paths]
    types = partition_types(texts, condition)
    others = tuple(dict.fromkeys(name for own in in_paths for name in own if name not in named))
    if not types:
        return PrunedFiles(tuple(found.paths), ({},) * len(found.paths), {}, 0, others)
    may_match = _may_match(condition, types, texts)
    paths = tuple(compress(found.paths, may_match))
    if not paths:
        raise InputError(
            f"input.where selects no file: no folder of the {len(found.paths):,} files matches {condition.text}"
        )
    constants = tuple(partition_values(own, types) for own in compress(texts, may_match))
    return PrunedFiles(paths, constants, types, len(found.paths) - len(paths), others)


def _names_in_paths(condition: Condition, live: LiveFiles | None) -> set[str]:
    """The columns of the condition that may have their values in paths."""
    named = {column.name for column in condition.columns}
    if live is None:
        return named
    return {name for name in named if name in live.columns and not live.columns[name].in_files}


def _may_match(
    condition: Condition, types: Mapping[str, pa.DataType], texts: Sequence[Mapping[str, str | None]]
) -> list[bool]:
    """[files] whether rows of a file with these values may match. Files with equal values are looked at once."""
    keys = [tuple(sorted(own.items())) for own in texts]
    known = {
        key: not cannot_match(condition, types, partition_values(own, types))
        for key, own in dict(zip(keys, texts, strict=True)).items()
    }
    return [known[key] for key in keys]
