"""Ids and attributes as their owner spells them: the text and the JSON of one value."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pyarrow as pa

from ...tasks.spelling import spelled

__all__ = ["json_rows_of", "json_value", "spelt"]


def spelt(value: Any) -> str:
    """An id or an attribute as text: no quotes and no separators within a number; empty for null."""
    return "" if value is None else str(spelled(value))


def json_value(value: Any) -> Any:
    """The same value as JSON can hold it: numbers, text and truth values as they are, all else as text; null for a
    number that is none, or infinite.
    """
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, bool | int | str) else str(spelled(value))


def json_rows_of(table: pa.Table) -> Iterator[dict[str, Any]]:
    """The rows of a table as JSON can hold them, one at a time."""
    for batch in table.to_batches():
        for row in batch.to_pylist():
            yield {name: json_value(value) for name, value in row.items()}
