"""Transpose rows of in-edges by sorting, make rows of both directions, and find the rows that contain some sources."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...chunked.rows import ChunkedRows
from ...graph import InRows
from ..adjacency import row_numbers, starts_of
from ..arrays.indexing import bincount
from ..streaming import transposed_rows
from .push_pull import Pushed


def transpose_rows(rows: InRows, sources: int) -> InRows:
    """The entries of `rows` as rows by source. Takes 24 bytes an entry of scratch memory, 40 with weights. The host
    transposes rows that are streamed.
    """
    if isinstance(rows, ChunkedRows):
        return transposed_rows(rows.home, sources)
    offsets = starts_of(bincount(rows.source, sources))
    key = rows.source.astype(np.int64) << 32
    key |= row_numbers(rows.offsets)
    if rows.weight is None:
        key.sort()
        return InRows(offsets, (key & 0xFFFFFFFF).astype(np.int32))
    by = cupy.argsort(key)  # stable: repeated entries keep their order
    return InRows(offsets, (key[by] & 0xFFFFFFFF).astype(np.int32), rows.weight[by])


def both_ways(low: Any, high: Any, weight: Any, vertices: int) -> InRows:
    """The rows of edges in both directions. Takes 40 bytes an edge of scratch memory, 64 with weights."""
    up, down = (starts_of(bincount(ends, vertices)) for ends in (low, high))
    key = high.astype(np.int64) << 32
    key |= low
    source = cupy.empty(2 * len(low), np.int32)
    weights = None if weight is None else cupy.empty(len(source))
    if weights is None:
        key.sort()
    else:
        by = cupy.argsort(key)
        key, turned = key[by], weight[by]
    # In a row lower neighbours come first. So an entry's place is its place among the entries of its own direction,
    # plus the number of entries of the other direction before it.
    to = up[key >> 32]
    to += cupy.arange(len(key))
    source[to] = (key & 0xFFFFFFFF).astype(np.int32)
    if weights is not None:
        weights[to] = turned
    to = down[low + np.int64(1)]
    to += cupy.arange(len(low))
    source[to] = high
    if weights is not None:
        weights[to] = weight
    return InRows(up + down, source, weights)


def touched_rows(transposed: InRows, changed: Any, rows: int) -> Any:
    """The rows that contain a changed source, ascending."""
    seen = cupy.zeros(rows, np.bool_)
    if len(changed):
        Pushed(transposed, changed).launch("mark_rows", seen, VALUE=0, ALONG=0, LARGEST=0)
    return cupy.flatnonzero(seen).astype(np.int32)
