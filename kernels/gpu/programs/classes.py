"""Rows sorted by length, so that the number of lanes that gather a row fits its length; see classes.cu."""

from __future__ import annotations

import weakref
from dataclasses import dataclass
from typing import Any

import cupy
import numpy as np

from ...graph import InRows
from ..runtime import source
from ..runtime.constants import GATHER_LONGEST, GATHER_PER_LANE, SHORT_LONGEST

CLASSES = 7
BLOCK = 256
_WARPS = BLOCK // 32


@dataclass(frozen=True)
class RowClasses:
    """Rows in classes by length; classes.cuh describes the classes. All arrays are on the device, and the host reads
    none of them.
    """

    selected: Any
    """int32 [rows], or None for all rows."""
    order: Any
    """int32 [rows] indices of rows, by class."""
    starts: Any
    """int64 [CLASSES + 1] where each class starts in `order`."""
    first_part: Any
    """int32 [long rows or more] the first part of each long row; None if rows are not cut into parts."""
    slot_of: Any
    """int32 [parts or more] the long row of each part."""
    parts: Any
    """int64 [1] number of parts."""

    @property
    def blocks(self) -> int:
        """Blocks of a launch over all rows and parts."""
        most = len(self.order) + (0 if self.slot_of is None else len(self.slot_of))
        return source.grid(most, _WARPS, 16)

    def arguments(self, rows: InRows) -> tuple[Any, ...]:
        """The first arguments of kernels that use `fold_rows`."""
        selected = 0 if self.selected is None else self.selected
        return rows.offsets, selected, self.order, self.starts, self.first_part, self.slot_of, self.parts


_of_all_rows: dict[int, tuple[weakref.ref[Any], RowClasses]] = {}
"""The classes of all rows of an InRows, by the id of the InRows or of its `lasting`, while this object is alive."""


def row_classes(rows: InRows, selected: Any) -> RowClasses:
    """The classes of the selected rows for kernels that cut long rows into parts. Cached if all rows are selected."""
    if selected is not None:
        return _sorted(rows, selected, GATHER_PER_LANE, GATHER_LONGEST, True)
    lasting = rows if rows.lasting is None else rows.lasting
    key = id(lasting)
    known = _of_all_rows.get(key)
    if known is not None and known[0]() is lasting:
        return known[1]
    found = _sorted(rows, None, GATHER_PER_LANE, GATHER_LONGEST, True)
    _of_all_rows[key] = weakref.ref(lasting, lambda _: _of_all_rows.pop(key, None)), found
    return found


def short_and_long_rows(rows: InRows, selected: Any) -> RowClasses:
    """The classes of the selected rows for kernels with a lane an entry, or a block for a row of over 32 entries."""
    return _sorted(rows, selected, 1, SHORT_LONGEST, False)


def _sorted(rows: InRows, selected: Any, per_lane: int, longest: int, cut: bool) -> RowClasses:
    count = rows.rows if selected is None else len(selected)
    shape = (source.grid(count, BLOCK),), (BLOCK,)
    arguments = rows.offsets, 0 if selected is None else selected, np.int64(count)
    defines: dict[str, Any] = {"PER_LANE": per_lane, "LONGEST": longest}
    sizes = cupy.zeros(CLASSES, np.uint64)
    source.kernel("programs/classes:count_classes", **defines)(*shape, (*arguments, sizes))
    starts = cupy.zeros(CLASSES + 1, np.int64)
    cupy.cumsum(sizes.view(np.int64), out=starts[1:])
    order, used, parts = cupy.empty(count, np.int32), cupy.zeros(CLASSES, np.uint64), cupy.zeros(1, np.uint64)
    most = len(rows) // longest + 1  # a row that is cut has more than `longest` entries
    first_part = cupy.empty(most, np.int32) if cut else None
    slot_of = cupy.empty(2 * most, np.int32) if cut else None
    source.kernel("programs/classes:place_rows", **defines)(
        *shape, (*arguments, starts, used, order, first_part if cut else 0, slot_of if cut else 0, parts)
    )
    return RowClasses(selected, order, starts, first_part, slot_of, parts.view(np.int64))
