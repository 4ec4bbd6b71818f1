"""The smallest or largest value of each row of in-edges, and its first source; the kernels are in extremes.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...in_rows import ALONG, InRows
from ..runtime import source
from .classes import BLOCK, row_classes

VALUES = {np.dtype(np.int32): 0, np.dtype(np.int64): 1, np.dtype(np.float64): 2}
"""Types of values, as the kernels know them."""


def row_extremes(rows: InRows, selected: Any, values: Any, neutral: Any, along: str, largest: bool) -> tuple[Any, Any]:
    """The smallest or largest value over the entries of each row, and its first source."""
    classes = row_classes(rows, selected)
    count = len(classes.order)
    out, best = cupy.empty(count, values.dtype), cupy.empty(count, np.int32)
    partial, entry = cupy.empty(len(classes.slot_of), values.dtype), cupy.empty(len(classes.slot_of), np.int64)
    weight = 0 if rows.weight is None else rows.weight
    worst = values.dtype.type(neutral)
    arguments = (*classes.arguments(rows), rows.source, weight, values, worst, out, best, partial, entry)
    defines: dict[str, Any] = {"VALUE": VALUES[values.dtype], "ALONG": ALONG[along], "LARGEST": int(largest)}
    source.kernel("programs/extremes:row_extremes", **defines)((classes.blocks,), (BLOCK,), arguments)
    blocks = source.grid(len(classes.first_part), BLOCK)
    source.kernel("programs/extremes:finish_extremes", **defines)((blocks,), (BLOCK,), arguments)
    return out, best
