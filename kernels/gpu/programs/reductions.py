"""One value from the entries of each row of in-edges, and sums of arrays without rounding.

The kernels are in sums.cu, extremes.cu, counts.cu (most frequent values and h-indices) and exact.cu.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np

from ...graph import ALONG, Extreme, InRows
from ..runtime import source
from ..runtime.constants import EXACT_LIMBS
from .classes import BLOCK, RowClasses, row_classes, short_and_long_rows


def row_sums(rows: InRows, values: Any, along: str) -> Any:
    """The sum of values over the entries of each row."""
    classes = row_classes(rows, None)
    out, partial = cupy.empty(rows.rows, np.float64), cupy.empty(len(classes.slot_of), np.float64)
    weight = 0 if rows.weight is None else rows.weight
    arguments = (*classes.arguments(rows), rows.source, weight, values, out, partial)
    source.kernel("programs/sums:row_sums", ALONG=ALONG[along])((classes.blocks,), (BLOCK,), arguments)
    blocks = source.grid(len(classes.first_part), BLOCK)
    source.kernel("programs/sums:finish_sums", ALONG=ALONG[along])((blocks,), (BLOCK,), arguments)
    return out


VALUES = {np.dtype(np.int32): 0, np.dtype(np.int64): 1, np.dtype(np.float64): 2}
"""The value of the macro VALUE for each type of values."""


def defines_of(extreme: Extreme, kind: np.dtype[Any]) -> dict[str, Any]:
    """The macros of a kernel for this extreme of values of type `kind`."""
    return {"VALUE": VALUES[kind], "ALONG": ALONG[extreme.along], "LARGEST": int(extreme.largest)}


def row_extremes(rows: InRows, selected: Any, values: Any, extreme: Extreme) -> tuple[Any, Any]:
    """The best value over the entries of each row, and the first source that has this value."""
    classes = row_classes(rows, selected)
    count = len(classes.order)
    out, best = cupy.empty(count, values.dtype), cupy.empty(count, np.int32)
    partial, entry = cupy.empty(len(classes.slot_of), values.dtype), cupy.empty(len(classes.slot_of), np.int64)
    weight = 0 if rows.weight is None else rows.weight
    worst = extreme.worst(values.dtype)
    arguments = (*classes.arguments(rows), rows.source, weight, values, worst, out, best, partial, entry)
    defines = defines_of(extreme, values.dtype)
    source.kernel("programs/extremes:row_extremes", **defines)((classes.blocks,), (BLOCK,), arguments)
    blocks = source.grid(len(classes.first_part), BLOCK)
    source.kernel("programs/extremes:finish_extremes", **defines)((blocks,), (BLOCK,), arguments)
    return out, best


BLOCK_OF_ROW = 512
"""Threads that share a long row."""
SCRATCH_BYTES = 2**30
"""Maximum bytes of the tables of all blocks, unless the tables of LEAST_BLOCKS blocks take more."""
SHARED_ENTRIES = 2**10
"""The table of a row of at most this many entries fits shared memory."""
LEAST_BLOCKS = 4


def row_modes(rows: InRows, selected: Any, values: Any, none: int) -> Any:
    """The most frequent value of each row, the smallest if several are; `none` for a row without entries."""
    classes, longest = short_and_long_rows(rows, selected), _longest(rows, selected)
    out, kind = cupy.empty(len(classes.order), values.dtype), VALUES[values.dtype]
    _launch("short_modes", classes, rows, values, values.dtype.type(none), out, VALUE=kind)
    if longest > 32:
        slots = 1 << (2 * longest - 1).bit_length() if longest > SHARED_ENTRIES else 1
        blocks = _blocks(12 * slots)
        keys, counts = cupy.empty(blocks * slots, np.uint64), cupy.empty(blocks * slots, np.int32)
        _launch("long_modes", classes, rows, values, keys, counts, np.int64(slots), out, blocks=blocks, VALUE=kind)
    return out


def row_h_indices(rows: InRows, selected: Any, values: Any) -> Any:
    """The largest k such that k values of the row are at least k."""
    classes, longest = short_and_long_rows(rows, selected), _longest(rows, selected)
    out, kind = cupy.empty(len(classes.order), values.dtype), VALUES[values.dtype]
    _launch("short_h_indices", classes, rows, values, out, VALUE=kind)
    if longest > 32:
        blocks = _blocks(4 * (longest + 1))
        counts = cupy.empty(blocks * (longest + 1), np.int32)
        _launch("long_h_indices", classes, rows, values, counts, np.int64(longest + 1), out, blocks=blocks, VALUE=kind)
    return out


def _launch(
    name: str, classes: RowClasses, rows: InRows, values: Any, *own: Any, blocks: int | None = None, VALUE: int
) -> None:
    selected = 0 if classes.selected is None else classes.selected
    arguments = (rows.offsets, selected, classes.order, classes.starts, rows.source, values, *own)
    block = BLOCK if blocks is None else BLOCK_OF_ROW
    kernel = source.kernel(f"programs/counts:{name}", VALUE=VALUE)
    kernel((classes.blocks if blocks is None else blocks,), (block,), arguments)


def _longest(rows: InRows, selected: Any) -> int:
    """Number of entries of the longest selected row."""
    lengths = cupy.diff(rows.offsets) if selected is None else rows.offsets[selected + 1] - rows.offsets[selected]
    return int(lengths.max()) if len(lengths) else 0


def _blocks(table_bytes: int) -> int:
    """The number of blocks whose tables fit SCRATCH_BYTES, at least LEAST_BLOCKS."""
    most = source.grid(2**31, 1, 2)
    return max(LEAST_BLOCKS, min(most, SCRATCH_BYTES // table_bytes))


MAX_VALUES = 2**29
"""The most values added to one set of digits, which are int64."""


def exact_sums(arrays: Sequence[Any]) -> list[tuple[int, int]]:
    """The sum of each array, and the number of its values that are not finite."""
    parts = [(of, part) for of, values in enumerate(arrays) for part in _parts(values)]
    highest, digits = cupy.zeros(len(parts), np.int32), cupy.zeros((len(parts), EXACT_LIMBS + 1), np.uint64)
    for at, (_, part) in enumerate(parts):
        if part.dtype != np.float64:
            digits[at, :1].view(np.int64)[:] = part.sum(dtype=np.int64)
            continue
        shape, words = ((source.grid(len(part), BLOCK),), (BLOCK,)), (part, np.int64(len(part)), highest[at : at + 1])
        source.kernel("programs/exact:sample_highest")(*shape, words)
        source.kernel("programs/exact:add_digits")(*shape, (*words, digits[at]))
    found = [(0, 0)] * len(arrays)
    for (of, _), (*own, not_finite) in zip(parts, digits.view(np.int64).get().tolist(), strict=True):
        total = sum(digit << 32 * limb for limb, digit in enumerate(own))
        found[of] = found[of][0] + total, found[of][1] + not_finite
    return found


def _parts(values: Any) -> list[Any]:
    """The values in parts, each for one set of digits. Integers are in one part."""
    if values.dtype != np.float64 or not len(values):
        return [values]
    whole = cupy.ascontiguousarray(values)
    return [whole[first : first + MAX_VALUES] for first in range(0, len(whole), MAX_VALUES)]
