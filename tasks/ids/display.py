"""Ids as people read and type them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pyarrow as pa

from ..inputs.columns import is_uuid

_HEXADECIMAL = np.frombuffer(b"0123456789abcdef", np.uint8)
_DIGITS = [position for position, character in enumerate(str(UUID(int=0))) if character != "-"]
"""Positions of the digits in the text of a UUID."""


def type_name(id_type: pa.DataType) -> str:
    """The name of an id type in messages and manifests."""
    return "uuid" if isinstance(id_type, pa.BaseExtensionType) else str(id_type)


def are_same(one: str, other: str) -> bool:
    """Whether ids of two types, by their `type_name`, are stored alike in results: the types are equal, or both are
    UUIDs, which are 16 bytes whether or not a file calls them UUIDs.
    """
    return one == other or {one, other} == {"uuid", str(pa.binary(16))}


def display_id(value: Any) -> Any:
    """An id for display: a UUID as text with hyphens; integers and strings unchanged."""
    if isinstance(value, bytes):
        return str(UUID(bytes=value)) if len(value) == 16 else value.hex()
    return str(value) if isinstance(value, UUID) else value


def display_column(column: pa.Array) -> pa.Array:
    """A column of a result table with UUIDs as text; columns of other types unchanged."""
    if not is_uuid(column.type):
        return column
    if isinstance(column, pa.ExtensionArray):
        column = column.storage
    stored = column.cast(pa.binary(16)).buffers()[1]
    values = np.frombuffer(stored or b"", np.uint8)[16 * column.offset :][: 16 * len(column)]
    text = np.full((len(column), 36), ord("-"), np.uint8)
    text[:, _DIGITS] = _HEXADECIMAL[np.stack([values >> 4, values & 15], axis=1)].reshape(-1, 32)
    missing = column.is_null().to_numpy(zero_copy_only=False)
    return pa.array(text.view("S36").ravel(), pa.binary(), mask=missing).cast(pa.string())


def parse_id(text: str, id_type: pa.DataType) -> int | str | bytes:
    """Parse an id that a person typed into a value of the result's tables.

    Raises ValueError if the text is no id of that type.
    """
    if is_uuid(id_type):
        return UUID(text.strip()).bytes
    if not pa.types.is_integer(id_type):
        return text
    number = text.strip()
    if not number.removeprefix("-").isdecimal() or not number.isascii() or len(number) > 20:
        raise ValueError(f"{text[:80]!r} is not a whole number")
    try:
        pa.scalar(int(number), id_type)
    except (OverflowError, pa.ArrowException) as error:
        raise ValueError(f"{text[:80]!r} is no {id_type}") from error
    return int(number)
