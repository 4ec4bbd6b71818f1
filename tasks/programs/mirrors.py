"""Which sources of a block's rows are whose, and the values that come for them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import programs as gathers
from ...kernels.in_rows import InRows
from .. import order
from ..partition import Partitioner
from ..shards.carrier import Carrier, Letter, Words
from .block import Block
from .mail import NOTHING, pack, unpack
from .program import Array

IntArray = NDArray[np.int32]


class Mirrors:
    """The sources of one block: its own vertices and those of other groups. All groups make one at the same time."""

    def __init__(self, block: Block, home: Partitioner, carrier: Carrier) -> None:
        self.block, self.carrier = block, carrier
        groups = range(carrier.groups)
        homes = home(block.sources)
        self.heard: list[IntArray] = [np.flatnonzero(homes == g).astype(np.int32) for g in groups]
        """[groups] positions among the sources of those that each group has."""
        self.own = order.lookup(block.sources, block.number)
        """[own] positions among the sources."""
        asked = [NOTHING if g == block.group else pack(block.sources[self.heard[g]].astype(np.int64)) for g in groups]
        letters = carrier.exchange(NOTHING, asked)
        self.wanted: list[IntArray] = [
            order.lookup(block.number, unpack(letter.own, [np.int64])[0].astype(block.number.dtype))
            for letter in letters
        ]
        """[groups] own vertices, ascending, whose values each other group wants, in the order of its `heard`."""
        self.words = sum(map(len, asked))

    def exchange(self, common: Words, own: list[Words]) -> list[Letter]:
        """Meet the others; see `Carrier.exchange`."""
        self.words += len(common) * (self.carrier.groups - 1) + sum(map(len, own))
        return self.carrier.exchange(common, own)

    def letters(self, values: Array, moved: IntArray | None) -> list[Words]:
        """[groups] what each other group wants of the `values` of own vertices: of all, or of those that `moved`,
        which ascend.
        """
        found = []
        for wanted in self.wanted:
            if not len(wanted):
                found.append(NOTHING)
            elif moved is None:
                found.append(pack(values[wanted]))
            else:
                place = np.searchsorted(wanted, moved)
                place[place == len(wanted)] = 0
                here = wanted[place] == moved
                found.append(pack(place[here].astype(np.int32), values[here]))
        return found

    def take_all(self, letters: list[Letter], into: Array) -> None:
        """Put the values of all sources of other groups in their positions of `into` [sources]."""
        for heard, letter in zip(self.heard, letters, strict=True):
            if len(letter.own):
                into[heard] = unpack(letter.own, [into.dtype])[0]

    def take_moved(self, letters: list[Letter], moved: IntArray, values: Array) -> tuple[IntArray, Array]:
        """The sources that are heard, ascending, and their values; of this group those of its vertices `moved`."""
        places, found = [self.own[moved]], [values]
        for heard, letter in zip(self.heard, letters, strict=True):
            if len(letter.own):
                place, value = unpack(letter.own, [np.int32, values.dtype])
                places.append(heard[place])
                found.append(value)
        if len(places) == 1:
            return places[0], values
        place, value = np.concatenate(places), np.concatenate(found)
        by = np.argsort(place)
        return place[by], value[by]

    def out_degrees(self, turned: InRows | None) -> NDArray[np.int64]:
        """[own] entries, in rows of all groups, that each own vertex is the source of."""
        block = self.block
        if turned is None:
            counts = np.bincount(block.rows.source, minlength=len(block.sources))
        else:
            counts = np.diff(turned.offsets)
        own = [NOTHING if g == block.group else pack(counts[heard]) for g, heard in enumerate(self.heard)]
        degree: NDArray[np.int64] = counts[self.own]
        for wanted, letter in zip(self.wanted, self.exchange(NOTHING, own), strict=True):
            if len(wanted):
                degree[wanted] += unpack(letter.own, [np.int64])[0]
        return degree

    def out_weights(self, turned: InRows | None) -> NDArray[np.float64]:
        """[own] the weights of those entries, added up in the order of their targets whatever the cut.

        Raises ValueError where edges have no weights.
        """
        rows = self.block.rows
        if rows.weight is None:
            raise ValueError("edges have no weights that could be added up")
        if self.carrier.groups > 1:
            return self._gathered_weights(rows, rows.weight)
        turned = gathers.rows_of_sources(rows, len(self.block.sources)) if turned is None else turned
        assert turned.weight is not None
        return _weights_of(turned.offsets, turned.weight)[self.own]

    def _gathered_weights(self, rows: InRows, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Every group tells each other one the entries whose sources that has, and it puts them in order."""
        block = self.block
        target = block.number[kernels.row_numbers(rows.offsets)].astype(np.int64)
        place = np.empty(len(block.sources), np.int32)
        homes = np.empty(len(block.sources), np.int16)
        for g, heard in enumerate(self.heard):
            place[heard] = np.arange(len(heard), dtype=np.int32)
            homes[heard] = g
        by, cuts = order.group(homes[rows.source], self.carrier.groups)
        told = [
            pack(place[rows.source[entries]], target[entries], weights[entries]) for entries in np.split(by, cuts[1:-1])
        ]
        others = [NOTHING if g == block.group else words for g, words in enumerate(told)]
        letters = [letter.own for letter in self.exchange(NOTHING, others)]
        letters[block.group] = told[block.group]
        found = [unpack(words, [np.int32, np.int64, np.float64]) for words in letters]
        vertex = np.concatenate([at if g == block.group else self.wanted[g][at] for g, (at, _, _) in enumerate(found)])
        targets, (code,) = order.encode(np.concatenate([to for _, to, _ in found]))
        by = order.order_pairs(vertex, code, len(block.number), len(targets))
        offsets = order.offsets(np.bincount(vertex, minlength=len(block.number)))
        return _weights_of(offsets, np.concatenate([weight for _, _, weight in found])[by])


def _weights_of(offsets: NDArray[np.int64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    """[rows] the sum of consecutive weights."""
    return gathers.row_sums(InRows(offsets, np.arange(len(weight), dtype=np.int32)), weight)
