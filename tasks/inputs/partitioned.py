"""The files of an input that a condition leaves, by what their paths say of their rows."""

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
from .finding import Found

__all__ = ["Partitioned", "partitioned"]


@dataclass(frozen=True)
class Partitioned:
    """Files, and the values that their paths give to columns of the condition."""

    paths: tuple[str, ...]

    constants: tuple[Mapping[str, Any], ...]
    """[paths] column → value."""

    types: Mapping[str, pa.DataType]
    """Of these columns."""

    left_out: int
    """Files in which no row can meet the condition."""

    others: tuple[str, ...] = ()
    """Columns that paths give values to and the condition does not name."""


def partitioned(found: Found, condition: Condition | None, live: LiveFiles | None) -> Partitioned:
    """The files to be read. Raises InputError if the condition leaves none, and UsageError if it does not fit.

    Hive's folders `column=value` count below the folder that the input names; in a Delta table they are those of its
    partition columns. Iceberg has such columns in its files.
    """
    if condition is None or (live is not None and live.table.format == "iceberg"):
        return Partitioned(tuple(found.paths), ({},) * len(found.paths), {}, 0)
    named = {column.name for column in condition.columns}
    if live is not None:
        named = {name for name in named if name in live.columns and not live.columns[name].in_files}
    held = [texts_of_path(found.root, path) for path in found.paths]
    texts = [{name: text for name, text in own.items() if name in named} for own in held]
    types = partition_types(texts)
    others = tuple(dict.fromkeys(name for own in held for name in own if name not in named))
    if not types:
        return Partitioned(tuple(found.paths), ({},) * len(found.paths), {}, 0, others)
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
            f"input.where leaves no file: the folders of none of the {len(found.paths):,} files meet {condition.text}"
        )
    return Partitioned(tuple(paths), tuple(constants), types, len(found.paths) - len(paths), others)
