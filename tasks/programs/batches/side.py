"""The rows that a search reads, and the exchange of what it finds: the words of vertices, and values at their bits."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ....kernels import programs as gathers
from ....kernels.cpu import searches
from ....kernels.graph import InRows, IntArray
from ...ids.order import Ints
from ...partition import Partitioner
from ...shards.carriers.carrier import Carrier, GroupPacket, Words
from ..block import GraphBlock
from ..mirrors import Mirrors, reversed_block
from ..words import NO_WORDS, pack, unpack

MARK_FACTOR = 16
"""If the vertices of a level have fewer than 1 / MARK_FACTOR of the remaining entries, one thread marks the rows that
the level reaches. Otherwise threads read all remaining rows.
"""

ALL_BITS = np.uint64(2**64 - 1)

Masks = NDArray[np.uint64]


@dataclass(frozen=True)
class SourceFrontier:
    """Vertices of a level. `len()` is their number."""

    rows: IntArray
    """[frontier] own vertices, ascending."""
    masks: Masks
    """[frontier, words] the searches for which they are in the level, a bit each."""

    def __len__(self) -> int:
        return len(self.rows)


class Side:
    """The rows of a block by which a search goes in one direction."""

    def __init__(self, block: GraphBlock, mirrors: Mirrors, transposed: InRows, words: int) -> None:
        self.rows, self.mirrors, self.transposed = block.rows, mirrors, transposed
        self.at = np.zeros((len(block.sources), words), np.uint64)
        """[sources, words] the bits of the vertices of a level, between `take` and `clear`."""
        self.lengths = np.diff(block.rows.offsets)
        """[own] entries of each row."""
        self.entries = 0
        """Entries of rows that were read."""
        self._marked = np.zeros(block.rows.rows, np.bool_)

    def packets(self, frontier: SourceFrontier, values: NDArray[np.float64] | None = None) -> list[Words]:
        """[groups] the messages with the words that each group needs, and the `values` [sources, columns] at their
        bits.
        """
        found = []
        for requested in self.mirrors.requested:
            if not len(requested):
                found.append(NO_WORDS)
                continue
            position = np.searchsorted(requested, frontier.rows)
            position[position == len(requested)] = 0
            here = requested[position] == frontier.rows
            masks = frontier.masks[here]
            words = [pack(position[here].astype(np.int32)), pack(masks.reshape(-1))]
            if values is not None:
                rows, columns = bits_of(masks)
                words.append(pack(values[self.mirrors.own[frontier.rows[here]][rows], columns]))
            found.append(np.concatenate([np.array([len(masks)], np.uint32), *words]))
        return found

    def take(
        self, packets: list[GroupPacket], frontier: SourceFrontier, values: NDArray[np.float64] | None = None
    ) -> IntArray:
        """Write the words of a level to `at`, and received values to `values`. Returns the positions of the vertices,
        ascending.
        """
        positions = [self.mirrors.own[frontier.rows]]
        self.at[positions[0]] = frontier.masks
        width = self.at.shape[1]
        for sources, packet in zip(self.mirrors.sources_of, packets, strict=True):
            if not len(packet.own):
                continue
            count = int(packet.own[0])
            ends = 1 + count, 1 + count + 2 * width * count
            (position,) = unpack(packet.own[1 : ends[0]], [np.int32])
            (masks,) = unpack(packet.own[ends[0] : ends[1]], [np.uint64])
            masks = masks.reshape(count, width)
            positions.append(sources[position])
            self.at[positions[-1]] = masks
            if values is not None:
                rows, columns = bits_of(masks)
                (values[positions[-1][rows], columns],) = unpack(packet.own[ends[1] :], [np.float64])
        return positions[0] if len(positions) == 1 else np.sort(np.concatenate(positions))

    def clear(self, positions: IntArray) -> None:
        """Remove the words of a level from `at`."""
        self.at[positions] = 0

    def reached(self, positions: IntArray, closed: Masks, left: int) -> IntArray | None:
        """The rows, ascending, that a level reaches with a bit that is not in `closed` [own, words]; None if it takes
        less time to read all rows that are left, with `left` entries.
        """
        offsets = self.transposed.offsets
        pushed = int((offsets[positions + 1] - offsets[positions]).sum())
        if MARK_FACTOR * pushed >= left:
            return None
        self.entries += pushed
        return searches.reached_rows(self.transposed, positions, self.at, closed, self._marked)


def sides_of(block: GraphBlock, home: Partitioner, carrier: Carrier, words: int) -> tuple[Side, Side]:
    """The rows of in-edges and the rows of out-edges of a block, which are the same for mutual edges.

    All groups must call this at the same time: it takes some exchanges.
    """
    mirrors = Mirrors(block, home, carrier)
    transposed = block.rows if block.symmetric else gathers.transpose_rows(block.rows, len(block.sources))
    into = Side(block, mirrors, transposed, words)
    if block.mutual:
        return into, into
    other = reversed_block(block, mirrors, transposed)
    if carrier.groups == 1:
        return into, Side(other, mirrors, block.rows, words)
    back = Mirrors(other, home, carrier)
    return into, Side(other, back, gathers.transpose_rows(other.rows, len(other.sources)), words)


def bits_of(masks: Masks) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The row and the column of each bit of `masks` [rows, words], row by row."""
    octets = np.ascontiguousarray(masks, "<u8").view(np.uint8)
    rows, columns = np.nonzero(np.unpackbits(octets, axis=1, bitorder="little"))
    return rows, columns


def unused_bits(columns: int, words: int) -> Masks:
    """[words] the bits of the columns that no search uses, if there are `columns` searches."""
    used = np.arange(64 * words) < columns
    return ~np.packbits(used, bitorder="little").view("<u8").astype(np.uint64)


def first_frontier(number: Ints, sources: NDArray[np.int64], words: int) -> SourceFrontier:
    """Level 0 in the group with the vertices `number` [own]: search i is at `sources[i]`, which are distinct."""
    position = np.searchsorted(number, sources)
    position[position == len(number)] = 0
    here = np.flatnonzero(number[position] == sources) if len(number) else np.empty(0, np.int64)
    here = here[np.argsort(position[here])]
    masks = np.zeros((len(here), words), np.uint64)
    masks[np.arange(len(here)), here // 64] = np.uint64(1) << (here % 64).astype(np.uint64)
    return SourceFrontier(position[here].astype(np.int32), masks)
