"""Sums over rows of in-edges; the kernels are in sums.cu."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ...in_rows import ALONG, InRows
from ..runtime import source
from .classes import BLOCK, row_classes


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
