"""Sorting and coding of integers: distinct values, pairs, groups.

Sorting 64-bit keys is several times faster than computing a sorting permutation. Two values, or a value and its
position, are packed into one key where their bits fit. Each function has a slower path for values that do not fit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, TypeAlias

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ..errors import OutOfRoom

Ints: TypeAlias = NDArray[np.signedinteger[Any]]
"""An array of signed integers of any width."""

KEY_BITS = 63
"""Bits of a key, which is a non-negative int64."""

FEW_UNUSED = 8
"""A table of ids starts at 0 if the number of ids below the least one is at most 1 / FEW_UNUSED of the range of the
others.
"""
MAX_CODES = 2**31 - 1
"""The most distinct values that int32 positions can number."""

MANY = 2**18
"""Columns of at least this length are indexed by kernels, which are loaded for that."""

FEW_GROUPS = 32
"""For up to this many groups a GPU reads all elements once for each group, since a sort takes 30 bytes an element."""

TABLE_SLACK = 4
"""Tables over a range of values are used if the range is at most this many times the number of values."""


def bits(count: int) -> int:
    """Bits that hold the values 0 … count - 1."""
    return max(count - 1, 0).bit_length()


def shifted(values: Ints, by: int, count: int) -> Ints:
    """Values + by, as int32 if numbers below `count` fit it, else as int64."""
    typed: Ints = values.astype(np.int32 if bits(count) < 32 else np.int64, copy=False)
    return typed + typed.dtype.type(by) if by else typed


def check_codes(values: int) -> None:
    """Raises OutOfRoom for more than MAX_CODES distinct values, whose positions would overflow int32."""
    if values > MAX_CODES:
        raise OutOfRoom(
            f"one task has {values:,} distinct vertices, over the {MAX_CODES:,} allowed: lower ingest.rows_per_block, "
            "write smaller row groups, or raise partitioning.count"
        )


def fits_table(span: int, values: int) -> bool:
    """Whether a table over a range of `span` is small enough for `values` values."""
    return span <= TABLE_SLACK * values + 1024


def largest(values: Ints) -> int:
    """The largest value, or 0 for an empty array."""
    return _number(values.max()) if len(values) else 0


def _number(value: Any) -> int:
    """A value of NumPy, or of CuPy once its kernels have ended. A copy that waits for them would hold up others."""
    return int(value if isinstance(value, np.generic) else kernels.to_host(value))


def heads(ordered: NDArray[Any]) -> NDArray[np.bool_]:
    """Mask of the first element of each run of equal values in a sorted array."""
    mask = np.ones_like(ordered, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=mask[1:])
    return mask


def distinct(values: Ints) -> Ints:
    """The distinct values, ascending. Sorts: `np.unique` of NumPy hashes, which takes three times as long."""
    ordered = np.sort(values)
    return ordered[heads(ordered)]


def tally(values: Ints) -> tuple[Ints, NDArray[np.int64]]:
    """The distinct values, ascending, and the count of each."""
    if not len(values):
        return values, np.zeros(0, np.int64, like=values)
    floor = _number(values.min())
    span = largest(values) - floor + 1
    if fits_table(span, len(values)):
        places = values - floor if floor else values
        if kernels.on_host(values) and (len(values) < MANY or values.itemsize < 4):  # without loading Numba
            counts = np.bincount(places, minlength=span)
        else:
            counts = kernels.bincount(places, span)
        present = np.flatnonzero(counts)
        return (present + floor).astype(values.dtype), counts[present]
    ordered = np.sort(values)
    starts = np.flatnonzero(heads(ordered))
    return ordered[starts], np.diff(starts, append=len(ordered))


def encode(*columns: Ints) -> tuple[Ints, list[NDArray[np.int32]]]:
    """The distinct values of columns of one type, ascending, and each column as positions in them.

    Raises OutOfRoom for more than MAX_CODES distinct values.
    """
    filled = [column for column in columns if len(column)]
    if not filled:
        return columns[0], [column.astype(np.int32) for column in columns]
    floor = min(int(column.min()) for column in filled)
    span = max(int(column.max()) for column in filled) - floor + 1
    if fits_table(span, sum(map(len, columns))):
        return _encode_by_table(columns, floor, span)
    return _encode_by_hash(columns) if kernels.on_host(filled[0]) else _encode_by_sort(columns)


def _encode_by_table(columns: Sequence[Ints], floor: int, span: int) -> tuple[Ints, list[NDArray[np.int32]]]:
    # A table that starts at 0 needs no subtraction, which is another pass over the columns.
    start = 0 if 0 <= floor <= span // FEW_UNUSED else floor

    def cells(column: Ints) -> Ints:
        return column - start if start else column

    present = np.zeros(floor - start + span, np.bool_, like=columns[0])
    for column in columns:
        if len(column) < MANY:
            present[cells(column)] = True
        else:
            kernels.store(present, cells(column), np.ones_like(column, np.bool_))
    few = not MANY <= len(present) <= MAX_CODES  # without kernels, which are for int32
    found = np.flatnonzero(present) if few else kernels.nonzero(present)
    values = found.astype(columns[0].dtype) + start if start else found.astype(columns[0].dtype, copy=False)
    check_codes(len(values))
    if len(values) == span:
        return values, [(column - floor if floor else column).astype(np.int32, copy=False) for column in columns]
    code = np.cumsum(present, dtype=np.int32) - np.int32(1) if few else kernels.number_marked(present)
    return values, [
        code[cells(column)] if len(column) < MANY else kernels.take(code, cells(column)) for column in columns
    ]


def _encode_by_sort(columns: Sequence[Ints]) -> tuple[Ints, list[NDArray[np.int32]]]:
    values, code = np.unique(np.concatenate(columns), return_inverse=True)
    check_codes(len(values))
    return values, np.split(code.astype(np.int32), np.cumsum([len(column) for column in columns])[:-1].tolist())


def _encode_by_hash(columns: Sequence[Ints]) -> tuple[Ints, list[NDArray[np.int32]]]:
    found, codes = hash_columns([pa.array(column) for column in columns])
    values = found.to_numpy()
    ascending = np.argsort(values)
    return values[ascending], recode(ascending, codes, [len(column) for column in columns])


def hash_columns(columns: Sequence[pa.Array]) -> tuple[pa.Array, NDArray[np.int32]]:
    """The distinct values of columns of one type, unordered, and the concatenated columns as positions in them."""
    chunks = pa.chunked_array(columns).dictionary_encode().chunks  # empty columns get no chunk
    if not chunks:
        return columns[0], np.zeros(0, np.int32)
    return chunks[-1].dictionary, np.concatenate([chunk.indices.to_numpy() for chunk in chunks])


def recode(
    ascending: NDArray[np.integer[Any]], codes: NDArray[np.int32], sizes: Sequence[int]
) -> list[NDArray[np.int32]]:
    """Convert the positions of `hash_columns` to positions in the values sorted by the permutation `ascending`.

    Returns one array for each column, of `sizes` [columns] rows.

    Raises OutOfRoom for more than MAX_CODES values.
    """
    check_codes(len(ascending))
    position = np.empty(len(ascending), np.int32)
    position[ascending] = np.arange(len(ascending), dtype=np.int32)
    return np.split(position[codes], np.cumsum(sizes)[:-1])


def encode_runs(runs: Sequence[Ints]) -> tuple[Ints, list[NDArray[np.int32]]]:
    """As `encode`, for ascending columns, at least one of them not empty."""
    floor, top = min(int(run[0]) for run in runs if len(run)), max(int(run[-1]) for run in runs if len(run))
    if fits_table(top - floor + 1, sum(map(len, runs))):
        return _encode_by_table(runs, floor, top - floor + 1)
    values = distinct(np.concatenate(runs))
    return values, [lookup(values, run) for run in runs]


def lookup(values: Ints, queries: Ints) -> NDArray[np.int32]:
    """Positions in `values` (sorted, distinct) of the `queries`, all of which occur in `values`.

    Raises OutOfRoom for more than MAX_CODES values.
    """
    check_codes(len(values))
    if np.array_equal(values, queries):
        return np.arange(len(values), dtype=np.int32, like=values)
    if len(values) and fits_table(int(values[-1]) - int(values[0]) + 1, len(queries)):
        position = np.zeros(int(values[-1]) - int(values[0]) + 1, np.int32, like=values)
        position[values - int(values[0])] = np.arange(len(values), dtype=np.int32, like=values)
        return position[queries - int(values[0])]
    return np.searchsorted(values, queries).astype(np.int32)


def distinct_pairs(low: Ints, high: Ints, lows: int, highs: int) -> tuple[Ints, Ints]:
    """The distinct pairs, sorted by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs. Types do not change."""
    if bits(lows) + bits(highs) > KEY_BITS:
        permutation = np.argsort(high, kind="stable")
        permutation = permutation[np.argsort(low[permutation], kind="stable")]
        low, high = low[permutation], high[permutation]
        mask = heads(low) | heads(high)
        return low[mask], high[mask]
    key = _pack(low, high, bits(highs))
    if kernels.total(key[1:] > key[:-1]) < len(key) - 1:
        key.sort()
        key = key[heads(key)]
        low = (key >> bits(highs)).astype(low.dtype)
        key &= (1 << bits(highs)) - 1
        high = key.astype(high.dtype)
    return low, high


def order_pairs(low: NDArray[np.int32], high: NDArray[np.int32], lows: int, highs: int) -> Ints:
    """The permutation that sorts pairs by (low, high), for 0 ≤ low < lows and 0 ≤ high < highs.

    Takes a table over each of the two ranges.
    """
    return kernels.order_pairs(low, high, lows, highs)


def _pack(upper: Ints, lower: Ints, lower_bits: int) -> NDArray[np.int64]:
    key = upper.astype(np.int64)
    key <<= lower_bits
    key |= lower
    return key


def _order_keys(code: Ints, rows: int) -> NDArray[np.int64]:
    key = _pack(code, np.arange(rows, like=code), bits(rows))
    key.sort()
    key &= (1 << bits(rows)) - 1
    return key


def order_by(code: Ints, codes: int) -> NDArray[np.intp]:
    """The stable permutation that sorts by code, for 0 ≤ code < codes."""
    if bits(codes) + bits(len(code)) <= KEY_BITS:
        return _order_keys(code, len(code))
    return np.argsort(code, kind="stable")


def group(code: NDArray[np.int16], groups: int) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
    """The stable permutation that sorts by code, for 0 ≤ code < groups, and the start of each group in it.

    The starts [groups + 1] are on the host.
    """
    if kernels.on_host(code):
        sizes = np.bincount(code, minlength=groups)
    else:
        sizes = kernels.bincount(code.astype(np.int32), groups)
    return np.argsort(code, kind="stable"), kernels.to_host(offsets(sizes))  # NumPy sorts 16-bit values by counting


def positions_by_group(code: NDArray[np.int16], groups: int) -> Iterator[NDArray[Any]]:
    """The positions of each group's elements in `code`, ascending, for 0 ≤ code < groups.

    Few groups on a GPU are found one after the other, since the positions of all elements at once take 8 bytes each.
    """
    if kernels.on_host(code) and len(code) >= MANY:
        yield from kernels.positions_by_group(code, groups)
    elif not kernels.on_host(code) and groups <= FEW_GROUPS:
        for own in range(groups):
            yield np.flatnonzero(code == own)
    else:
        by_group, cuts = group(code, groups)
        for start, stop in pairwise(cuts.tolist()):
            yield by_group[start:stop]


def offsets(sizes: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """The start of each of consecutive runs, and the end of the last one: int64 [len(sizes) + 1]."""
    ends = np.zeros(len(sizes) + 1, np.int64, like=sizes)
    np.cumsum(sizes, out=ends[1:])
    return ends
