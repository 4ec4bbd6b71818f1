"""Partition pruning: which files of an input may match a condition, by column values in their paths."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from ..errors import InputError
from ..tables.live import LiveFiles
from ..where.condition import Condition
from ..where.filter import cannot_match
from ..where.partitions import partition_types, partition_values, texts_of_path
from .finding import FoundFiles


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
    named = {column.name for column in condition.columns}
    if live is not None:
        named = {name for name in named if name in live.columns and not live.columns[name].in_files}
    in_paths = [texts_of_path(found.root, path) for path in found.paths]
    texts = [{name: text for name, text in own.items() if name in named} for own in in_paths]
    types = partition_types(texts, condition)
    others = tuple(dict.fromkeys(name for own in in_paths for name in own if name not in named))
    if not types:
        return PrunedFiles(tuple(found.paths), ({},) * len(found.paths), {}, 0, others)
    known: dict[tuple[tuple[str, str | None], ...], bool] = {}
    paths, constants = [], []
    for path, own in zip(found.paths, texts, strict=True):
        values = partition_values(own, types)
        key = tuple(sorted(own.items()))
        if key not in known:
            known[key] = cannot_match(condition, types, values)
        if not known[key]:
            paths.append(path)
            constants.append(values)
    if not paths:
        raise InputError(
            f"input.where selects no file: no folder of the {len(found.paths):,} files matches {condition.text}"
        )
    return PrunedFiles(tuple(paths), tuple(constants), types, len(found.paths) - len(paths), others)
