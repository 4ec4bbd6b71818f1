"""Sources of a block's rows that belong to other groups (mirrors), and the exchange of their values.

`reversed_block` has the out-edges of the vertices of a block, for supersteps against the direction of edges.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels import programs as gathers
from ...kernels.chunked import ChunkedRows
from ...kernels.graph import InRows, IntArray
from ..device import place_like
from ..ids import order
from ..partition import Partitioner
from ..shards.carriers.carrier import Carrier, GroupPacket, Words
from .block import Entries, GraphBlock, build_block
from .program import Array
from .words import NO_WORDS, pack, pack_rows, unpack, unpack_to

SEARCH_COST = 8
"""A binary search takes the time of so many reads of an array from its start to its end."""

ALL = np.zeros(1, np.uint32)
"""The start of a message with the values of all vertices that the group needs."""


class Mirrors:
    """The sources of one block by group. All groups must create theirs at the same time: this takes an exchange."""

    def __init__(self, block: GraphBlock, home: Partitioner, carrier: Carrier) -> None:
        self.block, self.carrier = block, carrier
        groups = range(carrier.groups)
        alone = len(block.sources) == len(block.number)
        self.sources_of: list[IntArray] = _positions(None if alone else home(block.sources), block, carrier.groups)
        """[groups] positions of each group's vertices in the sources."""
        self.alone = alone
        """Whether the block has no sources of other groups."""
        self.first = _first_of(block.sources) if alone else None
        """The number of the first source, if each source has the number after the one before; else None."""
        self.own = self.sources_of[block.group]
        """[own] positions of own vertices in the sources."""
        self._places: list[IntArray | slice] = [_slice_of(sources) for sources in self.sources_of]
        """`sources_of`, as slices where positions follow each other, as those of groups with ranges of numbers do."""
        requests = [
            NO_WORDS if g == block.group else pack(order.shifted(block.sources[self.sources_of[g]], 0, block.vertices))
            for g in groups
        ]
        packets = carrier.exchange(NO_WORDS, requests)
        kind = order.shifted(block.number[:0], 0, block.vertices).dtype
        asked = [unpack(packet.own, [kind], block.number)[0] for packet in packets]
        rows = kernels.lookup(block.number.astype(kind, copy=False), np.concatenate(asked))
        ends = np.cumsum([len(one) for one in asked])
        self.requested: list[IntArray] = np.split(rows, ends[:-1].tolist())
        """[groups] own vertices, ascending, whose values each group needs, in the order of its `sources_of`."""
        self.words = sum(map(len, requests))
        """Words sent."""
        self.words_received = sum(len(packet.own) for packet in packets)
        self._all: Array | None = None

    def exchange(self, common: Words, own: list[Words]) -> list[GroupPacket]:
        """One exchange with all groups; see `Carrier.exchange`. Words for all groups travel in host memory."""
        self.words += len(common) * (self.carrier.groups - 1) + sum(map(len, own))
        packets = self.carrier.exchange(kernels.to_host(common), own)
        others = (packet for g, packet in enumerate(packets) if g != self.block.group)
        self.words_received += len(packets[self.block.group].own) + sum(
            len(packet.common) + len(packet.own) for packet in others
        )
        return packets

    def packets(self, values: Array, moved: IntArray | None) -> list[Words]:
        """[groups] the messages with the values that each group needs.

        `values` are those of all own vertices, or of the vertices `moved`, ascending. With `moved`, a message for
        `take_moved` begins with 0 if it has all values that the group needs; otherwise with the number of its values,
        and the place of each among the values that the group needs.
        """
        found, slots = [], None
        for requested in self.requested:
            if not len(requested):
                found.append(NO_WORDS)
            elif moved is None:
                found.append(pack_rows(values, requested))
            elif len(moved) == len(self.own):
                found.append(pack_rows(values, requested, ALL))
            elif len(moved) * SEARCH_COST < len(requested):
                position = np.searchsorted(requested, moved)
                position[position == len(requested)] = 0
                here = requested[position] == moved
                found.append(_pack_some(position[here].astype(np.int32), values[here]))
            else:
                if slots is None:
                    slots = np.full_like(self.own, -1)
                    slots[moved] = np.arange(len(moved), dtype=slots.dtype, like=slots)
                slot = slots[requested]
                here = np.flatnonzero(slot >= 0)
                found.append(_pack_some(here.astype(np.int32), values[slot[here]]))
        return found

    def all_values(self, values: Array, packets: list[GroupPacket]) -> Array:
        """[sources] the `values` of own vertices and the received values of other groups' vertices. Valid until the
        next call, and must not be changed: it may be `values`.
        """
        if self.alone:
            return values
        if self._all is None or self._all.dtype != values.dtype:
            self._all = np.empty_like(self.block.sources, values.dtype)
        found = self._all
        unpack_to(found, self._places[self.block.group], pack(values))
        for places, packet in zip(self._places, packets, strict=True):
            if len(packet.own):
                unpack_to(found, places, packet.own)
        return found

    def take_moved(
        self, packets: list[GroupPacket] | None, moved: IntArray, values: Array, ascending: bool = True
    ) -> tuple[IntArray, Array]:
        """The sources that sent, `ascending` or in any order, and their values.

        Sources of this group are its vertices `moved`; those of other groups are in `packets`, None if there was no
        exchange.
        """
        positions, found = [moved if self.alone else self.own[moved]], [values]
        for sources, packet in zip(self.sources_of, packets, strict=True) if packets is not None else ():
            if not len(packet.own):
                continue
            if packet.own[0]:
                position, value = unpack(packet.own[1:], [np.int32, values.dtype], values)
                positions.append(sources[position])
            else:
                (value,) = unpack(packet.own[1:], [values.dtype], values)
                positions.append(sources)
            found.append(value)
        if len(positions) == 1:
            return positions[0], values
        position, value = np.concatenate(positions), np.concatenate(found)
        if not ascending:
            return position, value
        by = np.argsort(position)
        return position[by], value[by]

    def out_degrees(self, transposed: InRows | None) -> NDArray[np.int64]:
        """[own] number of entries, over all groups, whose source is the own vertex."""
        block = self.block
        if transposed is None:
            counts = gathers.source_counts(block.rows, len(block.sources))
        else:
            counts = np.diff(transposed.offsets)
        own = [NO_WORDS if g == block.group else pack(counts[sources]) for g, sources in enumerate(self.sources_of)]
        degree: NDArray[np.int64] = counts[self.own]
        for requested, packet in zip(self.requested, self.exchange(NO_WORDS, own), strict=True):
            if len(requested):
                degree[requested] += unpack(packet.own, [np.int64], degree)[0]
        return degree

    def out_weights(self, transposed: InRows | None) -> NDArray[np.float64]:
        """[own] the sum of the weights of these entries, added in the order of their targets for any partitioning.

        Raises ValueError for edges without weights.
        """
        rows = self.block.rows
        if rows.weight is None:
            raise ValueError("edges have no weights that could be added up")
        if self.carrier.groups > 1:
            return self._gathered_weights()
        transposed = gathers.transpose_rows(rows, len(self.block.sources)) if transposed is None else transposed
        ones = np.ones_like(rows.weight, shape=(rows.rows,))
        return gathers.row_sums(transposed, ones, "multiply")[self.own]

    def _gathered_weights(self) -> NDArray[np.float64]:
        """Each group sends the entries to the groups of their sources, which sort and add them. Entries that are
        streamed past a GPU are sorted on the host.
        """
        block, streamed = self.block, isinstance(self.block.rows, ChunkedRows)
        rows = block.rows.home if isinstance(block.rows, ChunkedRows) else block.rows
        weights = rows.weight
        assert weights is not None
        target = place_like(weights, block.number)[kernels.row_numbers(rows.offsets)].astype(np.int64)
        position = np.empty_like(weights, np.int32, shape=(len(block.sources),))
        homes = np.empty_like(weights, np.int16, shape=(len(block.sources),))
        for g, here in enumerate(self.sources_of):
            sources = place_like(weights, here)
            position[sources] = np.arange(len(sources), dtype=np.int32, like=sources)
            homes[sources] = g
        by, cuts = order.group(homes[rows.source], self.carrier.groups)
        by_group = [
            pack(position[rows.source[entries]], target[entries], weights[entries])
            for entries in np.split(by, cuts[1:-1].tolist())
        ]
        others = [NO_WORDS if g == block.group else words for g, words in enumerate(by_group)]
        packets = [packet.own for packet in self.exchange(NO_WORDS, others)]
        packets[block.group] = by_group[block.group]
        found = [unpack(words, [np.int32, np.int64, np.float64], weights) for words in packets]
        requested = [place_like(weights, own) for own in self.requested]
        vertex = np.concatenate([at if g == block.group else requested[g][at] for g, (at, _, _) in enumerate(found)])
        targets, (code,) = order.encode(np.concatenate([to for _, to, _ in found]))
        by = order.order_pairs(vertex, code, len(block.number), len(targets))
        offsets = order.offsets(np.bincount(vertex, minlength=len(block.number)))
        weight = np.concatenate([weight for _, _, weight in found])[by]
        entries = InRows(offsets, np.zeros_like(weight, np.int32), weight)
        if streamed and block.on_device:
            entries = gathers.stream_rows(entries, 0)
        return gathers.row_sums(entries, np.ones_like(block.number, np.float64, shape=(1,)), "multiply")


def _first_of(number: Array) -> int | None:
    if not len(number):
        return None
    first, last = int(number[0]), int(number[-1])
    return first if last - first + 1 == len(number) else None


def _slice_of(positions: IntArray) -> IntArray | slice:
    """The same positions as a slice, if each follows the one before."""
    first = _first_of(positions)
    return positions if first is None else slice(first, first + len(positions))


def _positions(homes: NDArray[np.int16] | None, block: GraphBlock, groups: int) -> list[IntArray]:
    """[groups] the positions of the sources of each group; all are this group's without `homes`."""
    if homes is None:
        own = np.arange(len(block.sources), dtype=np.int32, like=block.sources)
        return [own if g == block.group else own[:0] for g in range(groups)]
    return kernels.positions_by_group(homes, groups)


def _pack_some(places: IntArray, values: Array) -> Words:
    """A message with the values at some places among those that the group needs."""
    if not len(places):
        return NO_WORDS
    count = np.full_like(places, len(places), np.uint32, shape=(1,))
    return np.concatenate([count, pack(places, values)])


def mirrors_of(block: GraphBlock, home: Partitioner, carrier: Carrier, alternates: bool) -> list[Mirrors]:
    """The mirrors of a block; and, if a program `alternates` and edges have directions, of the block with the out-edges
    of the same vertices, in host memory.

    All groups must call this at the same time: it takes some exchanges.
    """
    found = [Mirrors(block, home, carrier)]
    if alternates and not block.mutual:
        transposed = gathers.transpose_rows(block.rows, len(block.sources))
        found.append(Mirrors(reversed_block(block, found[0], transposed), home, carrier))
    return found


def reversed_block(block: GraphBlock, mirrors: Mirrors, transposed: InRows) -> GraphBlock:
    """The block with the out-edges of the same vertices, without weights. Each group sends entries to the groups of
    their sources. `transposed` are the rows by source.
    """
    if mirrors.carrier.groups == 1:  # then all vertices are sources, and own
        return GraphBlock(
            block.group, block.vertices, block.view, block.number, transposed, block.sources, False, False
        )
    target = block.number[kernels.row_numbers(block.rows.offsets)].astype(np.int64)
    homes = np.empty(len(block.sources), np.int16)
    for g, sources in enumerate(mirrors.sources_of):
        homes[sources] = g
    by, cuts = order.group(homes[block.rows.source], mirrors.carrier.groups)
    source = block.sources[block.rows.source].astype(np.int64)
    sent = [pack(source[entries], target[entries]) for entries in np.split(by, cuts[1:-1])]
    own = sent[block.group]
    packets = mirrors.exchange(NO_WORDS, [NO_WORDS if g == block.group else words for g, words in enumerate(sent)])
    parts = [unpack(own if g == block.group else packet.own, [np.int64, np.int64]) for g, packet in enumerate(packets)]
    kind = block.number.dtype
    source, target = (np.concatenate([part[end] for part in parts]).astype(kind) for end in (0, 1))
    entries = Entries(target, source)
    return build_block(block.group, mirrors.carrier.groups, block.vertices, block.number, entries, True, "in")
