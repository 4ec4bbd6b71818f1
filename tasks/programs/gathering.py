"""Combine the values that reach each vertex of a block in one superstep: pull over rows, or push from few vertices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...kernels import programs as gathers
from ...kernels.graph import InRows, IntArray
from ..shards.carriers.carrier import Packet, Words
from .block import Block
from .mirrors import Mirrors
from .orders.calls import Calls
from .program import Array, Best, Vertices

PUSH_FACTOR = 16
"""Vertices push if their entries are fewer than one in PUSH_FACTOR of those of rows that still receive. Otherwise these
rows are read.
"""
VALUE_FACTOR = 1
"""The same on the CPU for values: then a row is read to its end, and for `first` only up to a sender."""
SCAN_ENTRIES = 4
"""To look at a row that does not receive takes the time of this many entries in PUSH_FACTOR."""
SAMPLED = 2**14
"""Of more senders than this, the entries are estimated on the CPU, from about this many."""


class Gatherer(ABC):
    """Combines the values of one superstep for the vertices of a block."""

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors) -> None:
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
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
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
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
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

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        self.values: Array | None = None

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), moved)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
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

    def __init__(self, calls: Calls, block: Block, mirrors: Mirrors) -> None:
        super().__init__(calls, block, mirrors)
        combine = self.program.combine
        self.best = np.full_like(block.number, -1, np.int32) if combine == "argmin" or self.on_device else None
        self.out: Array | None = None
        self.values: Array | None = None
        self.largest = combine == "max"
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
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet] | None
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
        """About how many entries have these sources. Only the direction depends on it, and so no result."""
        apart = 1 if self.on_device else max(1, len(position) // SAMPLED)
        sampled = position[::apart]
        return gathers.count_selected(self.transpose(), sampled) * len(position) // max(len(sampled), 1)

    def _push(self, vertices: Vertices, position: IntArray, received: Array) -> tuple[IntArray, Any]:
        self.entries += gathers.count_selected(self.transpose(), position)
        neutral = neutral_value(received.dtype, self.largest)
        if self.out is None:
            self.out = np.full_like(self.block.number, neutral, received.dtype)
        along, bound = self.program.along, self._bound(vertices, received)
        touched = gathers.push(self.transpose(), position, received, along, self.largest, bound, self.best, self.out)
        touched = np.sort(touched)
        receiving = self.calls.receives(vertices.at(touched))
        kept = touched if receiving is None else touched[receiving]
        best = None if self.best is None else self.best[kept]
        got = self._got(self.out[kept], best, position, received)
        self.out[touched] = neutral
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
        neutral = neutral_value(received.dtype, self.largest)
        if self.values is None:
            self.values = np.empty_like(sources, received.dtype)
        self.values.fill(neutral)
        self.values[position] = received
        found, best = gathers.row_extremes(rows, selected, self.values, neutral, self.program.along, self.largest)
        has_come, bound = best >= 0, self._bound(vertices, received)
        if bound is not None:
            bound = bound if selected is None else bound[selected]
            has_come &= found > bound if self.largest else found < bound
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
    largest = combine in ("max", "any")
    neutral = 0 if combine == "any" else neutral_value(values.dtype, largest)
    found, best = gathers.row_extremes(rows, None, values, neutral, along, largest)
    return found > 0 if combine == "any" else found, best


def neutral_value(kind: np.dtype[Any], largest: bool) -> Any:
    """The worst value of the type. Programs must not emit it."""
    if kind.kind == "f":
        return -np.inf if largest else np.inf
    return np.iinfo(kind).min if largest else np.iinfo(kind).max


def numbers_of(block: Block, position: IntArray) -> Array:
    """The dense numbers of sources at positions; -1 for position -1."""
    found: Array = np.where(position >= 0, block.sources[np.maximum(position, 0)], -1).astype(block.number.dtype)
    return found
