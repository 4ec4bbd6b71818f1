"""Compute a value for each entry by arrays, some rows at a time, and combine them: for `message` and for `top`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np

from .... import kernels
from ....kernels import programs as gathers
from ....kernels.graph import InRows, IntArray, LongArray
from ...ids import order
from ...shards.carriers.carrier import Packet, Words
from ..block import Block
from ..gathering import Gatherer, combine_rows, neutral_value, numbers_of, sendable
from ..mirrors import Mirrors
from ..orders.calls import Calls, has_messages
from ..program import Array, Best, Top, Vertices
from .top import top_of_rows

ENTRIES_AT_ONCE = 2**20
"""Entries whose values are computed at once. A longer row is computed by itself."""


class _Part(NamedTuple):
    """Entries of some rows, in their order."""

    rows: IntArray
    """[part] the rows in the block."""
    offsets: LongArray
    """[part + 1] the entries of each row."""
    row: IntArray
    """[entries] positions in `rows`."""
    entry: LongArray
    """[entries] positions in the block."""


class GatherEntries(Gatherer):
    """Gathers with a value for each entry. Every row combines its own entries in their order, whichever rows are
    computed at once.
    """

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors, entries_at_once: int = ENTRIES_AT_ONCE) -> None:
        super().__init__(calls, block, mirrors)
        self.entries_at_once = entries_at_once
        self.values: Array | None = None
        self.by_changed = self.program.senders == "changed"
        self.keeps_values = self.program.combine in ("mode", "hindex")

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved if self.by_changed else None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
    ) -> tuple[IntArray | None, Any]:
        sent, sources = sendable(values), len(self.block.sources)
        if not self.by_changed:
            everyone = self.mirrors.all_values(sent, packets or [])
            rows = np.arange(self.block.rows.rows, dtype=np.int32, like=self.block.rows.source)
            return None, _joined([self._combined(vertices, everyone, part)[0] for part in self._parts(rows, None)])
        if self.values is None:
            self.values = np.empty_like(sent, shape=(sources,))
        position, received = self.mirrors.take_moved(packets, moved, sent)
        self.values[position] = received
        rows = gathers.touched_rows(self.transpose(), position, self.block.rows.rows)
        receiving = self.calls.receives(vertices.at(rows))
        rows = rows if receiving is None else rows[receiving]
        active = None
        if not self.keeps_values:
            active = np.zeros_like(self.values, dtype=np.bool_)
            active[position] = True
        found = [self._combined(vertices, self.values, part) for part in self._parts(rows, active)]
        came = np.concatenate([there for _, there in found])
        return rows[came], _joined([got for got, _ in found], came)

    def _parts(self, rows: IntArray, active: Array | None) -> Iterator[_Part]:
        """The entries of rows, ascending; only those with an `active` [sources] source, if given."""
        starts = self.block.rows.offsets[rows]
        ends = order.offsets(self.block.rows.offsets[rows + 1] - starts)
        first = 0
        while first < len(rows) or not first:
            last = int(np.searchsorted(ends, ends[first] + self.entries_at_once, side="right")) - 1
            last = min(max(last, first + 1), len(rows))
            offsets = ends[first : last + 1] - ends[first]
            row = kernels.row_numbers(offsets)
            entry = np.arange(len(row), like=offsets) + (starts[first:last] - offsets[:-1])[row]
            self.entries += len(row)
            if active is not None:
                kept = active[self.block.rows.source[entry]]
                row, entry = row[kept], entry[kept]
                offsets = order.offsets(np.bincount(row, minlength=last - first))
            yield _Part(rows[first:last], offsets, row, entry)
            first = max(last, 1)

    def _combined(self, vertices: Vertices, values: Array, part: _Part) -> tuple[Any, Array]:
        """[part] the combined values, and whether there were any."""
        rows, combine = self.block.rows, self.program.combine
        source = rows.source[part.entry]
        weight = None if rows.weight is None else rows.weight[part.entry]
        numbers = self.block.sources[source]
        if has_messages(self.program):
            ends = {"value": values[source], "number": numbers}
            sent = Vertices(ends, vertices.total, vertices.step, guarded=vertices.guarded)
            value = sendable(self.calls.message(sent, weight, vertices.at(part.rows[part.row])))
        else:
            value = values[source]
            if weight is not None and self.program.along:
                value = value + weight if self.program.along == "add" else value * weight
        if combine == "top":
            least = neutral_value(value.dtype, True)
            return top_of_rows(part.offsets, part.row, value, numbers, self.program.k, least), part.rows >= 0
        entries = InRows(part.offsets, np.arange(len(value), dtype=np.int32, like=source))
        found, best = combine_rows(combine, entries, value)
        if best is None:
            return found, part.rows >= 0
        if combine != "argmin":
            return found, best >= 0
        position = np.full_like(best, -1)
        position[best >= 0] = source[best[best >= 0]]
        return Best(found, numbers_of(self.block, position), values[np.maximum(position, 0)]), best >= 0


def _joined(parts: Sequence[Any], rows: Array | None = None) -> Any:
    """The combined values of all parts; of some `rows` of them, if given."""
    if isinstance(parts[0], Best | Top):
        names = [one.name for one in fields(parts[0])]
        return type(parts[0])(*(_joined([getattr(part, name) for part in parts], rows) for name in names))
    whole = np.concatenate(parts)
    return whole if rows is None else whole[rows]
