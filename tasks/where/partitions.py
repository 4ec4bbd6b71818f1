"""Column values in the folders of a path, as Hive writes them: `dt=2026-11-01/`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import unquote

import pyarrow as pa

_NULL = "__HIVE_DEFAULT_PARTITION__"
_PART = re.compile(r"([^/=]+)=([^/]*)")
_DAY = re.compile(r"\d{4}-\d{2}-\d{2}")
_WHOLE = re.compile(r"-?\d{1,18}")


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


def partition_types(files: Sequence[Mapping[str, str | None]]) -> dict[str, pa.DataType]:
    """Column → a type for the values of all files: int64, date32, else string."""
    values: dict[str, list[str]] = {}
    for file in files:
        for name, text in file.items():
            own = values.setdefault(name, [])
            if text is not None:
                own.append(text)
    return {name: _type(texts) for name, texts in values.items()}


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
