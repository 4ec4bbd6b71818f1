"""A record of a manifest in a notebook: its fields and values. Nested records are closed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel

from .html import framed, many, shown, table

MOST_ROWS = 20
"""Rows of a list, at most."""


def record_html(record: BaseModel) -> str:
    """HTML of the record."""
    return framed(f"<p><b>{type(record).__name__}</b></p>", _fields(dict(record)))


def _fields(fields: Mapping[str, Any]) -> str:
    return table([], [[shown(name), _value(value)] for name, value in fields.items()], 0)


def _value(value: Any) -> str:
    if isinstance(value, BaseModel):
        value = dict(value)
    if isinstance(value, Mapping):
        return _folded(many(len(value), "field"), _fields(value)) if value else "none"
    if isinstance(value, Sequence) and not isinstance(value, str):
        if not value:
            return "none"
        rows = [[shown(at), _value(one)] for at, one in enumerate(value[:MOST_ROWS])]
        more = f"<p>and {len(value) - MOST_ROWS:,} more</p>" if len(value) > MOST_ROWS else ""
        return _folded(many(len(value), "row"), table([], rows, 1) + more)
    if hasattr(value, "__dataclass_fields__"):
        return _folded(
            type(value).__name__, _fields({name: getattr(value, name) for name in value.__dataclass_fields__})
        )
    return shown(value, 200)


def _folded(summary: str, inside: str) -> str:
    return f"<details><summary>{summary}</summary>{inside}</details>"
