"""Conversion between id types of inputs and results, and the internal form of ids: int64 or strings, in the same order.

Ids that a person typed are converted, too, and found among the ids of a graph. uint64 becomes int64 with the highest
bit flipped. A UUID becomes the string of its 32 hexadecimal digits.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ... import kernels
from ..inputs.columns import is_uuid, plain_values, storage_values
from . import identity
from .display import display_id, parse_id
from .identity import Ids

_HIGHEST_BIT = np.uint64(2**63)
_DIGITS = 32
"""Hexadecimal digits of a UUID."""


def to_internal(column: pa.ChunkedArray, id_type: pa.DataType) -> Ids:
    """The internal form of a column of ids. The column has no nulls and a type that can be read as `id_type`.

    Raises Arrow's error for values that do not fit.
    """
    column = storage_values(plain_values(column))
    if is_uuid(id_type):
        return _digits(column.cast(pa.binary(16)))
    if not pa.types.is_integer(id_type):
        return _one_array(column.cast(pa.large_string()))
    if pa.types.is_uint64(id_type):
        return (column.cast(pa.uint64()).to_numpy() ^ _HIGHEST_BIT).view(np.int64)
    return column.cast(pa.int64()).to_numpy()


def from_internal(ids: Ids, id_type: pa.DataType) -> pa.Array:
    """Internal ids as a column of the type `id_type`."""
    if is_uuid(id_type):
        values = _bytes_of(ids)
        return pa.ExtensionArray.from_storage(id_type, values) if isinstance(id_type, pa.BaseExtensionType) else values
    if isinstance(ids, pa.Array):
        return ids.cast(id_type)
    numbers = kernels.to_host(ids)
    if pa.types.is_uint64(id_type):
        return pa.array(np.ascontiguousarray(numbers).view(np.uint64) ^ _HIGHEST_BIT)
    return pa.array(numbers).cast(id_type)


def with_prefix(ids: pa.ChunkedArray, prefix: str) -> pa.ChunkedArray:
    """Ids of any type as strings with a prefix."""
    ids = plain_values(ids)
    if isinstance(ids.type, pa.BaseExtensionType) or is_uuid(ids.type):
        texts = pa.array(
            [None if value is None else str(display_id(value)) for value in ids.to_pylist()], pa.large_string()
        )
        ids = pa.chunked_array([texts])
    text = pa.large_string()
    return pc.binary_join_element_wise(pa.scalar(prefix, text), ids.cast(text), pa.scalar("", text))


def _one_array(column: pa.ChunkedArray) -> pa.LargeStringArray:
    return pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)


def _digits(column: pa.ChunkedArray) -> pa.LargeStringArray:
    values = _one_array(column)
    _, content = values.buffers()
    if content is None:
        return pa.array([], pa.large_string())
    start = values.offset * 16
    text = memoryview(content)[start : start + 16 * len(values)].hex().encode()
    ends = np.arange(0, len(text) + 1, _DIGITS, dtype=np.int64)
    return pa.LargeStringArray.from_buffers(len(values), pa.py_buffer(ends), pa.py_buffer(text))


def _bytes_of(ids: pa.LargeStringArray) -> pa.FixedSizeBinaryArray:
    values = pa.concat_arrays([ids])  # a slice would carry the bytes of the whole array
    _, offsets, content = values.buffers()
    ends = np.frombuffer(offsets or bytes(8), np.int64)[values.offset : values.offset + len(values) + 1]
    text = bytes(memoryview(content or b"")[ends[0] : ends[-1]])
    return pa.FixedSizeBinaryArray.from_buffers(
        pa.binary(16), len(values), [None, pa.py_buffer(bytes.fromhex(text.decode()))]
    )


def parse_ids(texts: Sequence[str], id_type: pa.DataType) -> Ids:
    """Typed ids in the internal form of a graph with ids of `id_type`. Raises ValueError for a text that is no id."""
    values = [parse_id(text, id_type) for text in texts]
    column = pa.array(values, pa.binary(16) if is_uuid(id_type) else id_type)
    return to_internal(pa.chunked_array([column]), id_type)


def positions_of(wanted: Ids, ids: Ids) -> NDArray[np.int64]:
    """The position of each wanted id among the ascending `ids`, or -1. Both are in the internal form."""
    known = identity.to_host(ids)
    if isinstance(known, pa.Array):
        positions: NDArray[np.int64] = pc.index_in(wanted, value_set=known).fill_null(-1).to_numpy().astype(np.int64)
        return positions
    if not len(known):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(known, wanted), len(known) - 1)
    return np.where(known[at] == wanted, at, -1)


def shown_ids(ids: Ids, positions: Sequence[int], id_type: pa.DataType) -> list[Any]:
    """The ids at some positions, as people read them."""
    chosen = identity.take(identity.to_host(ids), np.array(positions, np.int64))
    return [display_id(value.as_py()) for value in from_internal(chosen, id_type)]
