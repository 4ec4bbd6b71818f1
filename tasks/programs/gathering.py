"""Combine the values that reach each vertex of a block in one superstep: pull over rows, or push from few vertices."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np

from ...kernels import programs as gathers
from ...kernels.graph import IntArray
from ...kernels.in_rows import InRows
from ..shards.carriers.carrier import Packet, Words
from .block import Block
from .mirrors import Mirrors
from .program import Array, Best, Program, Vertices

PUSH_FACTOR = 16
"""One thread pushes if the entries of sending vertices are fewer than one in PUSH_FACTOR. Otherwise threads read
rows.
"""


class Gatherer(ABC):
    """Combines the values of one superstep for the vertices of a block."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        self.program, self.block, self.mirrors = program, block, mirrors
        self.entries = 0
        """Entries of rows that were read."""
        self.transposed: InRows | None = None
        """The rows by source, if they are needed."""

    @abstractmethod
    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] the message to each group with the `values` that own vertices emitted."""

    @abstractmethod
    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet]
    ) -> tuple[IntArray | None, Any]:
        """The own vertices, ascending, that received a value, or None for all; and the combined values."""

    def transpose(self) -> InRows:
        """The rows by source."""
        if self.transposed is None:
            rows, sources = self.block.rows, len(self.block.sources)
            self.transposed = rows if self.block.symmetric else gathers.transpose_rows(rows, sources)
        return self.transposed


class GatherAll(Gatherer):
    """Every vertex sends. For costly combinations, rows without a changed source are not read again."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        super().__init__(program, block, mirrors)
        self.values: Array | None = None
        self.got: Array | None = None

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(sendable(values), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet]
    ) -> tuple[IntArray | None, Any]:
        values = sendable(values)
        before = self.values
        self.values = self.mirrors.all_values(values, packets)
        combine = self.program.combine
        if combine in ("mode", "hindex"):
            self.got = self._changed(before, self.values, self.got)
            return None, self.got
        self.entries += len(self.block)
        rows = self.block.rows
        if combine == "sum":
            return None, gathers.row_sums(rows, self.values.astype(np.float64, copy=False), self.program.along)
        largest = combine in ("max", "any")
        neutral = 0 if combine == "any" else neutral_value(values.dtype, largest)
        found, best = gathers.row_extremes(rows, None, self.values, neutral, self.program.along, largest)
        if combine == "argmin":
            return None, Best(found, _numbers(self.block, best))
        return None, found > 0 if combine == "any" else found

    def _changed(self, before: Array | None, values: Array, got: Array | None) -> Array:
        """Combine again the rows with a source whose value has changed."""
        combine = gathers.row_modes if self.program.combine == "mode" else gathers.row_h_indices
        rows = self.block.rows
        if before is not None and got is not None:
            moved = np.flatnonzero(values != before).astype(np.int32)
            if PUSH_FACTOR * len(moved) < len(values):
                touched = gathers.touched_rows(self.transpose(), moved, rows.rows)
                self.entries += int(np.diff(rows.offsets)[touched].sum())
                got = got.copy()
                got[touched] = combine(rows, touched, values)
                return got
        self.entries += len(rows)
        return combine(rows, None, values)


class GatherChanged(Gatherer):
    """Only changed vertices send (frontiers: Beamer, Asanović and Patterson, "Direction-optimizing breadth-first
    search", SC 2012).
    """

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        super().__init__(program, block, mirrors)
        self.transpose()
        self.best = np.full(block.rows.rows, -1, np.int32)
        self.touched = np.empty(block.rows.rows, np.int32)
        self.out: Array | None = None
        self.values: Array | None = None
        self.largest = program.combine == "max"

    def packets(self, values: Array, moved: IntArray) -> list[Words]:
        return self.mirrors.packets(self._values(values, moved), moved)

    def _values(self, values: Array, moved: IntArray) -> Array:
        """[moved] the values to send; for 'first' they are not used."""
        return np.zeros(len(moved), np.int32) if self.program.combine == "first" else sendable(values)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, packets: list[Packet]
    ) -> tuple[IntArray | None, Any]:
        rows, transposed = self.block.rows, self.transpose()
        position, received = self.mirrors.take_moved(packets, moved, self._values(values, moved))
        pushed = int((transposed.offsets[position + 1] - transposed.offsets[position]).sum())
        if PUSH_FACTOR * PUSH_FACTOR * pushed < len(rows):  # too few to evaluate `receives` for all
            return self._push(vertices, pushed, position, received)
        receiving = self.program.receives(vertices)
        read = gathers.count_entries(rows, receiving)
        if PUSH_FACTOR * pushed < read:
            return self._push(vertices, pushed, position, received)
        self.entries += read
        return self._pull(receiving, position, received)

    def _push(self, vertices: Vertices, pushed: int, position: IntArray, received: Array) -> tuple[IntArray, Any]:
        self.entries += pushed
        if self.out is None:
            self.out = np.empty(len(self.best), received.dtype)
        along = self.program.along
        touched = gathers.push(
            self.transpose(), position, received, along, self.largest, self.best, self.out, self.touched
        )
        kept = np.sort(touched)
        receiving = self.program.receives(vertices.at(kept))
        if receiving is not None:
            kept = kept[receiving]
        got = self._got(self.out[kept], self.best[kept])
        self.best[touched] = -1
        return kept, got

    def _pull(self, receiving: Array | None, position: IntArray, received: Array) -> tuple[IntArray, Any]:
        rows, sources = self.block.rows, len(self.block.sources)
        if self.program.combine == "first":
            active = np.zeros(sources, np.bool_)
            active[position] = True
            came, first = gathers.first_active_sources(rows, receiving, active)
            return came, _numbers(self.block, first)
        selected = None if receiving is None else np.flatnonzero(receiving).astype(np.int32)
        neutral = neutral_value(received.dtype, self.largest)
        if self.values is None:
            self.values = np.empty(sources, received.dtype)
        self.values.fill(neutral)
        self.values[position] = received
        found, best = gathers.row_extremes(rows, selected, self.values, neutral, self.program.along, self.largest)
        came = np.flatnonzero(best >= 0).astype(np.int32)
        return came if selected is None else selected[came], self._got(found[came], best[came])

    def _got(self, found: Array, best: IntArray) -> Any:
        if self.program.combine == "argmin":
            return Best(found, _numbers(self.block, best))
        return _numbers(self.block, best) if self.program.combine == "first" else found


def sendable(values: Array) -> Array:
    """The values as a type that gathers and messages support."""
    if values.dtype == np.bool_:
        return values.astype(np.int32)
    if values.dtype in (np.int32, np.int64, np.float64):
        return values
    raise ValueError(f"a program emits {values.dtype}, not bool, int32, int64 or float64")


def neutral_value(kind: np.dtype[Any], largest: bool) -> Any:
    """The worst value of the type. Programs must not emit it."""
    if kind.kind == "f":
        return -np.inf if largest else np.inf
    return np.iinfo(kind).min if largest else np.iinfo(kind).max


def _numbers(block: Block, position: IntArray) -> Array:
    """The dense numbers of sources at positions; -1 for position -1."""
    found = np.full(len(position), -1, block.number.dtype)
    there = position >= 0
    found[there] = block.sources[position[there]]
    return found
