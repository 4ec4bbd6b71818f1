"""Combine the values that reach each vertex of a block in one superstep: pull over rows, or push from few vertices.

`gatherer_of` chooses the gatherer of a program:

- `GatherAll`, `GatherKept` and `GatherChanged` combine values of the sources.
- `GatherSpread` lets values spread within a block at once: each vertex gets the smallest value of its connected
  component of the block.
- `GatherEntries` computes a value for each entry by arrays, some rows at a time: for `message` and for `top`, the k
  largest values of each row with their sources.
- `GatherLinks` counts the edges between the sources of each row. Every edge is sent to every block. A block counts the
  edge (x, y) for each of its vertices with x and y in its row. The edge is sent by the block of its end of higher
  degree. A single block has the whole graph and finds each triangle once.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import fields
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import programs as gathers
from ...kernels.graph import Extreme, InRows, IntArray, LongArray, Received
from ..ids import order
from ..shards.carriers.carrier import GroupPacket, Words
from .block import GraphBlock
from .mirrors import Mirrors
from .orders.calls import Calls, has_messages
from .program import Array, Best, Top, Vertices
from .words import NO_WORDS, pack, unpack


def top_of_rows(offsets: LongArray, row: IntArray, value: Array, source: Array, k: int, least: object) -> Top:
    """The `k` largest values of each row; of equal ones those that come first.

    `offsets` is int64 [rows + 1]; `row`, `value` and `source` are [entries], in the order of their rows. `least` fills
    the places of rows with fewer values, with source -1. Two stable sorts of all entries.
    """
    # The reverse of a stable order of the reversed values has equal values in their order.
    descending = len(value) - 1 - np.argsort(value[::-1], kind="stable")[::-1]
    order = descending[np.argsort(row[descending], kind="stable")]
    rank = np.arange(len(value), like=value) - offsets[row]
    kept = rank < k
    order, place = order[kept], row[kept].astype(np.int64) * k + rank[kept]
    rows = len(offsets) - 1
    best = np.full_like(value, least, shape=(rows * k,))
    best_source = np.full_like(source, -1, shape=(rows * k,))
    best[place], best_source[place] = value[order], source[order]
    return Top(best.reshape(rows, k), best_source.reshape(rows, k))


PUSH_FACTOR = 16
"""Vertices push if their entries are fewer than one in PUSH_FACTOR of those of rows that still receive. Otherwise these
rows are read.
"""
VALUE_FACTOR = 1
"""PUSH_FACTOR on the CPU for programs that combine values: they read a row to its end, `first` only up to a sender."""
SCAN_ENTRIES = 4
"""To look at a row that does not receive takes the time of this many entries in PUSH_FACTOR."""
SAMPLED = 2**14
"""Of more senders than this, the entries are estimated on the CPU, from about this many."""


class Gatherer(ABC):
    """Combines the values of one superstep for the vertices of a block."""

    def __init__(self, calls: Calls, block: GraphBlock, mirrors: Mirrors) -> None:
        self.calls, self.program, self.block, self.mirrors = calls, calls.program, block, mirrors
        self.on_device = block.on_device
        self.entries = 0
        """Entries of rows that were read."""
        self.transposed: InRows | None = None
        """The rows by source, if they are needed."""

    @abstractmethod
    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] the message to each group with the `values` that own vertices emitted."""

    @abstractmethod
    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        """The own vertices, ascending, that received a value, or None for all; and the combined values.

        `packets` are those of all groups, or None if only own vertices sent, as in the asynchronous order.
        """

    def transpose(self) -> InRows:
        """The rows by source."""
        if self.transposed is None:
            rows, sources = self.block.rows, len(self.block.sources)
            self.transposed = rows if self.block.symmetric else gathers.transpose_rows(rows, sources)
        return self.transposed


class GatherAll(Gatherer):
    """Every vertex sends, and every row is read."""

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        rows, combine = self.block.rows, self.program.combine
        received = self.mirrors.all_values(sendable(values), packets or [])
        self.entries += len(rows)
        found, best = combine_rows(combine, rows, received, self.program.along)
        if combine != "argmin" or best is None:
            return None, found
        return None, Best(found, numbers_of(self.block, best), received[np.maximum(best, 0)])


class GatherKept(Gatherer):
    """Only changed vertices send, and the last values of all sources are combined in the rows with a changed one."""

    def __init__(self, calls: Calls, block: GraphBlock, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        self.values: Array | None = None

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        rows = self.block.rows
        position, received = self.mirrors.take_moved(packets, moved, sendable(values))
        if self.values is None:  # all vertices sent
            self.values = np.empty_like(received, shape=(len(self.block.sources),))
        self.values[position] = received
        combine = gathers.row_modes if self.program.combine == "mode" else gathers.row_h_indices
        if PUSH_FACTOR * len(position) >= len(self.values):
            self.entries += len(rows)
            return None, combine(rows, None, self.values)
        touched = gathers.touched_rows(self.transpose(), position, rows.rows)
        self.entries += gathers.count_selected(rows, touched)
        return touched, combine(rows, touched, self.values)


class GatherChanged(Gatherer):
    """Only changed vertices send (frontiers: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first
    search", SC 2012).
    """

    def __init__(self, calls: Calls, block: GraphBlock, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        combine = self.program.combine
        self.best = np.full_like(block.number, -1, np.int32) if combine == "argmin" or self.on_device else None
        self.out: Array | None = None
        self.values: Array | None = None
        self.extreme = Extreme(combine == "max", self.program.along)
        self.factor = PUSH_FACTOR if combine == "first" or self.on_device else VALUE_FACTOR
        self.by_left = combine == "first" and not self.on_device
        self.left = len(block.rows)
        """About how many entries vertices have that have not sent, for `first` on the CPU."""

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(self._values(values, moved), moved)

    def _values(self, values: Array, moved: IntArray) -> Array:
        """[moved] the values to send; for 'first' they are not used."""
        return moved if self.program.combine == "first" else sendable(values)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        rows = self.block.rows
        position, received = self.mirrors.take_moved(packets, moved, self._values(values, moved))
        if self.program.combine == "first":
            received = position
        pushed = self._entries_of(position)
        self.left = max(self.left - pushed, 0)
        if PUSH_FACTOR * PUSH_FACTOR * pushed < len(rows):  # too few to evaluate `receives` for all
            return self._push(vertices, position, received)
        if self.by_left and self.factor * pushed < self.left + SCAN_ENTRIES * rows.rows:
            return self._push(vertices, position, received)
        receiving = self.calls.receives(vertices)
        if not self.by_left and self.factor * pushed < gathers.count_entries(rows, receiving):
            return self._push(vertices, position, received)
        return self._pull(vertices, receiving, position, received)

    def _entries_of(self, position: IntArray) -> int:
        """About how many entries have these sources. It decides only between push and pull, which give the same
        result.
        """
        apart = 1 if self.on_device else max(1, len(position) // SAMPLED)
        sampled = position[::apart]
        return gathers.count_selected(self.transpose(), sampled) * len(position) // max(len(sampled), 1)

    def _push(self, vertices: Vertices, position: IntArray, received: Array) -> tuple[IntArray, Any]:
        self.entries += gathers.count_selected(self.transpose(), position)
        worst = self.extreme.worst(received.dtype)
        if self.out is None:
            self.out = np.full_like(self.block.number, worst, received.dtype)
        by_row = Received(self.out, self.best, self._bound(vertices, received))
        touched = np.sort(gathers.push(self.transpose(), position, received, self.extreme, by_row))
        receiving = self.calls.receives(vertices.at(touched))
        kept = touched if receiving is None else touched[receiving]
        best = None if self.best is None else self.best[kept]
        got = self._got(self.out[kept], best, position, received)
        self.out[touched] = worst
        if self.best is not None:
            self.best[touched] = -1
        return kept, got

    def _bound(self, vertices: Vertices, received: Array) -> Array | None:
        """[own] what a received value must be better than; None for no such bound."""
        if not self.program.bound:
            return None
        bound: Array = getattr(vertices, self.program.bound)
        if bound.dtype != received.dtype:
            self.calls.refuse("emit", vertices, f"emits {received.dtype}, and its `bound` is {bound.dtype}")
        return bound

    def _pull(
        self, vertices: Vertices, receiving: Array | None, position: IntArray, received: Array
    ) -> tuple[IntArray, Any]:
        rows, sources = self.block.rows, self.block.sources
        if self.program.combine == "first":
            active = np.zeros_like(sources, np.bool_)
            active[position] = True
            came, first, read = gathers.first_active_sources(rows, receiving, active)
            self.entries += read
            return came, self._numbers(first)
        selected = None if receiving is None else np.flatnonzero(receiving).astype(np.int32)
        self.entries += len(rows) if selected is None else gathers.count_selected(rows, selected)
        if self.values is None:
            self.values = np.empty_like(sources, received.dtype)
        self.values.fill(self.extreme.worst(received.dtype))
        self.values[position] = received
        found, best = gathers.row_extremes(rows, selected, self.values, self.extreme)
        has_come, bound = best >= 0, self._bound(vertices, received)
        if bound is not None:
            bound = bound if selected is None else bound[selected]
            has_come &= found > bound if self.extreme.largest else found < bound
        came = np.flatnonzero(has_come).astype(np.int32)
        return came if selected is None else selected[came], self._got(found[came], best[came], position, received)

    def _got(self, found: Array, best: IntArray | None, position: IntArray, received: Array) -> Any:
        """The combined values of vertices that received one, with the sources `best`, of those that sent."""
        if self.program.combine == "argmin" and best is not None:
            return Best(found, self._numbers(best), received[np.searchsorted(position, best)])
        return self._numbers(found) if self.program.combine == "first" else found

    def _numbers(self, best: IntArray) -> Array:
        if self.mirrors.first is not None:
            found: Array = best if not self.mirrors.first else best + self.block.number.dtype.type(self.mirrors.first)
            return found.astype(self.block.number.dtype, copy=False)
        return self.block.sources[best].astype(self.block.number.dtype, copy=False)


def sendable(values: Array) -> Array:
    """Emitted values as a type that gathers and messages between groups support."""
    return values.astype(np.int32) if values.dtype == np.bool_ else values


def combine_rows(combine: str, rows: InRows, values: Array, along: str = "") -> tuple[Array, IntArray | None]:
    """The `values` [sources] combined over all rows, for all of `Combine` but "first", "links" and "top"; for extremes
    also the positions of their sources, -1 for rows without a value.
    """
    match combine:
        case "sum":
            return gathers.row_sums(rows, values.astype(np.float64, copy=False), along), None
        case "mode":
            return gathers.row_modes(rows, None, values), None
        case "hindex":
            return gathers.row_h_indices(rows, None, values), None
    found, best = gathers.row_extremes(rows, None, values, Extreme(combine in ("max", "any"), along))
    if combine == "any":
        is_any: Array = found > 0
        return is_any, np.where(is_any, best, -1)
    return found, best


def numbers_of(block: GraphBlock, position: IntArray) -> Array:
    """The dense numbers of sources at positions; -1 for position -1."""
    found: Array = np.where(position >= 0, block.sources[np.maximum(position, 0)], -1).astype(block.number.dtype)
    return found


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

    def __init__(
        self, calls: Calls, block: GraphBlock, mirrors: Mirrors, entries_at_once: int = ENTRIES_AT_ONCE
    ) -> None:
        super().__init__(calls, block, mirrors)
        self.entries_at_once = entries_at_once
        self.values: Array | None = None
        self.by_changed = self.program.senders == "changed"
        self.keeps_values = self.program.combine in ("mode", "hindex")

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved if self.by_changed else None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
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
            least = Extreme(largest=True).worst(value.dtype)
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


EDGES_PER_EXCHANGE = 2**20
"""The most edges that a block sends in one exchange."""


class GatherLinks(Gatherer):
    """Gathers for `combine` "links", for view "either": each source must be in a row once."""

    def __init__(
        self, calls: Calls, block: GraphBlock, mirrors: Mirrors, edges_per_exchange: int = EDGES_PER_EXCHANGE
    ) -> None:
        super().__init__(calls, block, mirrors)
        self.edges_per_exchange = edges_per_exchange
        self.transpose()

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] degrees of own vertices. Emitted values are ignored."""
        return self.mirrors.packets(np.diff(self.block.rows.offsets), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        """See `Gatherer.gather`. Exchanges once for each `edges_per_exchange` edges of the group with most edges."""
        block, rows = self.block, self.block.rows
        degree = self.mirrors.all_values(np.diff(rows.offsets), packets or [])
        of_row = kernels.row_numbers(rows.offsets)
        one, other = self.mirrors.own[of_row], rows.source
        higher = (degree[one] > degree[other]) | ((degree[one] == degree[other]) & (one > other))
        edges = np.flatnonzero(higher)
        self.entries += len(rows)
        if self.mirrors.carrier.groups == 1:
            offsets = order.offsets(np.bincount(of_row[edges], minlength=rows.rows))
            times = np.full_like(edges, 2, np.uint8) if block.times is None else block.times[edges]
            return None, gathers.count_all_links(offsets, other[edges], times)
        found = np.zeros_like(block.number, np.int64)
        counts = self.mirrors.exchange(np.array([len(edges)], np.uint32), [NO_WORDS] * self.mirrors.carrier.groups)
        most = max(int(packet.common[0]) for packet in counts)
        for first in range(0, most, self.edges_per_exchange):
            part = edges[first : first + self.edges_per_exchange]
            self._count_sent(one[part], other[part], None if block.times is None else block.times[part], found)
        return None, found

    def _count_sent(self, one: IntArray, other: IntArray, times: NDArray[np.uint8] | None, found: Array) -> None:
        """Send edges to all groups, and count the edges of all groups."""
        block, transposed = self.block, self.transpose()
        own_times = np.full_like(one, 2, np.uint8) if times is None else times
        gathers.count_links(transposed, one, other, own_times, found)
        ends = [block.sources[end].astype(np.int64) for end in (one, other)]
        words = pack(*ends, own_times.astype(np.int32))
        packets = self.mirrors.exchange(words, [NO_WORDS] * self.mirrors.carrier.groups)
        sources = block.sources.astype(np.int64, copy=False)
        for g, packet in enumerate(packets):
            if g == block.group:
                continue
            *numbers, counts = unpack(packet.common, [np.int64, np.int64, np.int32], found)
            position = [kernels.lookup(sources, end) for end in numbers]
            here = (position[0] >= 0) & (position[1] >= 0)
            one_here, other_here = (end[here] for end in position)
            gathers.count_links(transposed, one_here, other_here, counts[here].astype(np.uint8), found)


class GatherSpread(Gatherer):
    """For programs that `spread`: a superstep takes values to all vertices that the block's edges connect."""

    def __init__(self, calls: Calls, block: GraphBlock, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        self.root = gathers.connected_sources(block.rows, mirrors.own, len(block.sources), block.symmetric)
        self.entries += len(block)
        self.least: Array | None = None

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[GroupPacket] | None
    ) -> tuple[IntArray | None, Any]:
        values = sendable(values)
        position, received = self.mirrors.take_moved(packets, moved, values, ascending=False)
        if self.least is None:
            if values.dtype.kind != "i":
                self.calls.refuse("emit", vertices, f"spreads {values.dtype}, not int32 or int64")
            self.least = np.full_like(self.root, Extreme().worst(values.dtype), values.dtype)
        lowered = np.zeros_like(self.root, np.bool_)
        gathers.lower_values(self.root, position, received, self.least, lowered)
        return gathers.lowered_rows(self.root, self.mirrors.own, self.least, lowered)


def gatherer_of(calls: Calls, block: GraphBlock, mirrors: Mirrors) -> Gatherer:
    """The gatherer of the program for a block with these mirrors."""
    program = calls.program
    if has_messages(program) or program.combine == "top":
        return GatherEntries(calls, block, mirrors)
    if program.combine == "links":
        return GatherLinks(calls, block, mirrors)
    if program.senders == "all":
        return GatherAll(calls, block, mirrors)
    if program.spreads:
        return GatherSpread(calls, block, mirrors)
    return (GatherKept if program.combine in ("mode", "hindex") else GatherChanged)(calls, block, mirrors)
