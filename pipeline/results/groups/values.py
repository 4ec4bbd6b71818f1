"""Ids and attributes as text and as JSON values."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any

import pyarrow as pa

from ....tasks.ids.display import display_id


def as_text(value: Any) -> str:
    """An id or an attribute as text, without quotes and without thousands separators; empty for null."""
    return "" if value is None else str(display_id(value))


def json_value(value: Any) -> Any:
    """A value as JSON: numbers, text and booleans are unchanged, other values become text, NaN and infinity null."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(display_id(value))


def json_rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON values, one at a time."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield json_row(row)


def json_row(row: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a row as JSON values."""
    return {name: json_value(value) for name, value in row.items()}
