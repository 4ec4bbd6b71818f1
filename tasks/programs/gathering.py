"""What comes to the vertices of a block in one superstep: rows are read, or what few vertices say is taken round."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels import programs as gathers
from ...kernels.in_rows import InRows
from ..shards.carrier import Letter, Words
from .block import Block
from .mirrors import Mirrors
from .program import Array, Best, Program, Vertices

IntArray = NDArray[np.int32]

FEW = 16
"""Where the entries of those that are heard are fewer than one in so many, they are taken round by one thread; threads
read all rows otherwise.
"""


class Gatherer(ABC):
    """Takes the values of one superstep to the vertices of a block."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        self.program, self.block, self.mirrors = program, block, mirrors
        self.entries = 0
        """Entries of rows that were read."""
        self.turned: InRows | None = None
        """The rows by source, where they are needed."""

    @abstractmethod
    def letters(self, values: Array, moved: IntArray) -> list[Words]:
        """[groups] what each other group is told of the `values` that own vertices emitted."""

    @abstractmethod
    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, letters: list[Letter]
    ) -> tuple[IntArray | None, Any]:
        """The own vertices, ascending, to which something came, or None for all, and what came."""

    def turn(self) -> InRows:
        """The rows by source."""
        if self.turned is None:
            rows, sources = self.block.rows, len(self.block.sources)
            self.turned = rows if self.block.symmetric else gathers.rows_of_sources(rows, sources)
        return self.turned


class OfAll(Gatherer):
    """Every vertex is heard. Rows of which no source has changed need not be read again where they are costly."""

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        super().__init__(program, block, mirrors)
        self.values: Array | None = None
        self.got: Array | None = None

    def letters(self, values: Array, moved: IntArray) -> list[Words]:
        """See `Gatherer.letters`."""
        return self.mirrors.letters(_words(values), None)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, letters: list[Letter]
    ) -> tuple[IntArray | None, Any]:
        """See `Gatherer.gather`."""
        values = _words(values)
        before = self.values
        self.values = np.empty(len(self.block.sources), values.dtype)
        self.values[self.mirrors.own] = values
        self.mirrors.take_all(letters, self.values)
        combine = self.program.combine
        if combine in ("mode", "hindex"):
            self.got = self._changed(before, self.values, self.got)
            return None, self.got
        self.entries += len(self.block)
        rows = self.block.rows
        if combine == "sum":
            return None, gathers.row_sums(rows, self.values.astype(np.float64, copy=False), self.program.along)
        largest = combine in ("max", "any")
        silent = 0 if combine == "any" else least_of(values.dtype, largest)
        found, best = gathers.row_extremes(rows, None, self.values, silent, self.program.along, largest)
        if combine == "argmin":
            return None, Best(found, _numbers(self.block, best))
        return None, found > 0 if combine == "any" else found

    def _changed(self, before: Array | None, values: Array, got: Array | None) -> Array:
        """Reads the rows with a source whose value is another than before."""
        combine = gathers.row_modes if self.program.combine == "mode" else gathers.row_h_indices
        rows = self.block.rows
        if before is not None and got is not None:
            moved = np.flatnonzero(values != before).astype(np.int32)
            if FEW * len(moved) < len(values):
                touched = gathers.touched_rows(self.turn(), moved, rows.rows)
                self.entries += int(np.diff(rows.offsets)[touched].sum())
                got = got.copy()
                got[touched] = combine(rows, touched, values)
                return got
        self.entries += len(rows)
        return combine(rows, None, values)


class OfMoved(Gatherer):
    """Only vertices that moved are heard (frontiers: Beamer, Asanović and Patterson, "Direction-optimizing
    breadth-first search", SC 2012).
    """

    def __init__(self, program: Program, block: Block, mirrors: Mirrors) -> None:
        super().__init__(program, block, mirrors)
        self.turn()
        self.best = np.full(block.rows.rows, -1, np.int32)
        self.touched = np.empty(block.rows.rows, np.int32)
        self.out: Array | None = None
        self.values: Array | None = None
        self.largest = program.combine == "max"

    def letters(self, values: Array, moved: IntArray) -> list[Words]:
        """See `Gatherer.letters`."""
        return self.mirrors.letters(self._values(values, moved), moved)

    def _values(self, values: Array, moved: IntArray) -> Array:
        """[moved] of 'first' the values do not matter."""
        return np.zeros(len(moved), np.int32) if self.program.combine == "first" else _words(values)

    def gather(
        self, vertices: Vertices, values: Array, moved: IntArray, letters: list[Letter]
    ) -> tuple[IntArray | None, Any]:
        """See `Gatherer.gather`."""
        rows, turned = self.block.rows, self.turn()
        place, heard = self.mirrors.take_moved(letters, moved, self._values(values, moved))
        told = int((turned.offsets[place + 1] - turned.offsets[place]).sum())
        if FEW * FEW * told < len(rows):  # so few that it is not worth asking all vertices who listens
            return self._push(vertices, told, place, heard)
        listening = self.program.listens(vertices)
        wanted = None if listening is None else np.flatnonzero(listening).astype(np.int32)
        read = len(rows) if wanted is None else int((rows.offsets[wanted + 1] - rows.offsets[wanted]).sum())
        if FEW * told < read:
            return self._push(vertices, told, place, heard)
        self.entries += read
        return self._pull(wanted, place, heard)

    def _push(self, vertices: Vertices, told: int, place: IntArray, heard: Array) -> tuple[IntArray, Any]:
        self.entries += told
        if self.out is None:
            self.out = np.empty(len(self.best), heard.dtype)
        along = self.program.along
        touched = gathers.push(self.turn(), place, heard, along, self.largest, self.best, self.out, self.touched)
        kept = np.sort(touched)
        listening = self.program.listens(vertices.at(kept))
        if listening is not None:
            kept = kept[listening]
        got = self._got(self.out[kept], self.best[kept])
        self.best[touched] = -1
        return kept, got

    def _pull(self, wanted: IntArray | None, place: IntArray, heard: Array) -> tuple[IntArray, Any]:
        rows, sources = self.block.rows, len(self.block.sources)
        if self.program.combine == "first":
            speaks = np.zeros(sources, np.bool_)
            speaks[place] = True
            best = gathers.first_speakers(rows, wanted, speaks)
            found = best
        else:
            silent = least_of(heard.dtype, self.largest)
            if self.values is None:
                self.values = np.empty(sources, heard.dtype)
            self.values.fill(silent)
            self.values[place] = heard
            found, best = gathers.row_extremes(rows, wanted, self.values, silent, self.program.along, self.largest)
        came = np.flatnonzero(best >= 0).astype(np.int32)
        return came if wanted is None else wanted[came], self._got(found[came], best[came])

    def _got(self, found: Array, best: IntArray) -> Any:
        if self.program.combine == "argmin":
            return Best(found, _numbers(self.block, best))
        return _numbers(self.block, best) if self.program.combine == "first" else found


def _words(values: Array) -> Array:
    """Values of a type that gathers and letters know."""
    if values.dtype == np.bool_:
        return values.astype(np.int32)
    if values.dtype in (np.int32, np.int64, np.float64):
        return values
    raise ValueError(f"a program emits {values.dtype}, not bool, int32, int64 or float64")


def least_of(kind: np.dtype[Any], largest: bool) -> Any:
    """A value that no other of the type is worse than; nobody is to emit it."""
    if kind.kind == "f":
        return -np.inf if largest else np.inf
    return np.iinfo(kind).min if largest else np.iinfo(kind).max


def _numbers(block: Block, place: IntArray) -> Array:
    """The numbers of sources, -1 for none."""
    found = np.full(len(place), -1, block.number.dtype)
    there = place >= 0
    found[there] = block.sources[place[there]]
    return found
