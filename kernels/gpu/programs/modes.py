"""The most frequent value of each row of in-edges, and the h-index of its values; the kernels are in counts.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...in_rows import InRows
from ..runtime import source
from .classes import BLOCK, RowClasses, short_and_long_rows
from .extremes import VALUES

BLOCK_OF_ROW = 512
"""Threads that share a long row."""
SCRATCH_BYTES = 2**30
"""Most bytes of the tables of blocks, unless the tables of few blocks take more."""
SHARED_ENTRIES = 2**10
"""Entries of a row whose table fits shared memory."""
LEAST_BLOCKS = 4


def row_modes(rows: InRows, selected: Any, values: Any, none: int) -> Any:
    """The most frequent value of each row; the smallest of several; `none` for a row without entries."""
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
    """Entries of the longest of the rows."""
    lengths = cupy.diff(rows.offsets) if selected is None else rows.offsets[selected + 1] - rows.offsets[selected]
    return int(lengths.max()) if len(lengths) else 0


def _blocks(table_bytes: int) -> int:
    """Blocks whose tables fit SCRATCH_BYTES."""
    most = source.grid(2**31, 1, 2)
    return max(LEAST_BLOCKS, min(most, SCRATCH_BYTES // table_bytes))
