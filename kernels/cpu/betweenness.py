"""Betweenness by Brandes's algorithm for up to 64 sources at once: level by level, or a whole graph in one block.

Ulrik Brandes, "A faster algorithm for betweenness centrality", Journal of Mathematical Sociology 25(2), 2001. Each
source is a bit in the word of a vertex. Bits that no search uses must be set in `seen`. `BlockPaths` lists the vertices
of a level in an order that differs from run to run. The result of a vertex depends on neither this order nor the number
of threads, since one thread adds up a row, in the order of the row.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ..graph import InRows, IntArray, LongArray
from ..runtime.cache import cached_njit
from .arrays.intrinsics import fetch_add, lowest_bit, places, popcount
from .programs.chunks import SERIAL_ENTRIES, row_chunks

Masks = NDArray[np.uint64]
Floats = NDArray[np.float64]

MARK_FACTOR = 4
"""The rows that a level reaches are marked first if its vertices have fewer than one in MARK_FACTOR of the entries that
are left; otherwise all rows that are left are read.
"""
_FACTOR = np.uint64(MARK_FACTOR)
SHARE = 64
"""Rows that a thread takes at a time."""
KEPT = 256
"""Vertices of the next level that a thread keeps before it adds them to the list."""
_TAKEN, _LENGTH, _WORDS = 0, 8, 16
"""Elements of the counters, each on a cache line of its own, and their number."""
_LISTED, _MARKED, _EVERY = 0, 1, 2
"""The rows that a level visits: the rows in a list, the marked rows, or all rows that are left."""
_PUSHED, _SIZE, _LEFT, _READ = 0, 1, 2, 3
"""Sums of a thread: entries of the new level's vertices by source and by row, entries of rows whose bits are now all
seen, entries read.
"""
SUMS = 8
"""A row of sums is a cache line."""
FEW_LEVELS = 256
"""Initial capacity of the lists of levels."""
_1, _NONE, _ALL = np.uint32(1), np.uint64(0), np.uint64(2**64 - 1)


@cached_njit
def add_at_bits(sums, values, position, mask):
    """Add the values at the bits of a mask to `sums`: one by one for few bits, with vector instructions for many bits.

    Both ways have bitwise the same result: adding 0 changes no sum, as no sum is -0.
    """
    if popcount(mask) * np.uint64(4) <= np.uint64(sums.size):
        while mask:
            column = lowest_bit(mask)
            sums[column] += values[position, column]
            mask &= mask - np.uint64(1)
    else:
        for column in range(sums.size):
            value = values[position, column]
            sums[column] += value if (mask >> np.uint64(column)) & np.uint64(1) else 0.0


class Sources(NamedTuple):
    """The vertices that a block's rows have as sources, with the bits of a level, and a value for each bit."""

    own: IntArray
    """[rows] the position of each row's vertex among the sources."""
    at: Masks
    """[sources] the bits of the vertices of a level."""
    values: Floats
    """[sources, columns]"""


class LevelRows(NamedTuple):
    """Rows of a level whose dependencies are added up."""

    rows: IntArray
    """[listed]"""
    masks: Masks
    """[listed] the bits whose level the row has."""
    reads: NDArray[np.bool_]
    """[listed] whether the row has an end in the next level. Other rows are not read."""


@cached_njit
def _count_chunk(chunk, rows, seen, sources, fresh):
    offsets, source, _, _, selected, cuts = rows
    own, at, counts = sources
    sums = np.empty(counts.shape[1])
    for i in range(cuts[chunk], cuts[chunk + 1]):
        row = selected[i]
        open_bits = ~seen[row]
        new = np.uint64(0)
        for q in range(offsets[row], offsets[row + 1]):
            mask = at[source[q]] & open_bits
            if mask:
                if not new:
                    sums[:] = 0.0
                new |= mask
                add_at_bits(sums, counts, source[q], mask)
        fresh[i] = new
        position = own[row]
        while new:
            column = lowest_bit(new)
            counts[position, column] = sums[column]
            new &= new - np.uint64(1)


@cached_njit(parallel=True)
def _counts(rows, seen, sources, fresh):
    for chunk in prange(rows.cuts.size - 1):
        _count_chunk(np.int64(chunk), rows, seen, sources, fresh)


@cached_njit
def _add_chunk(chunk, rows, level, sources, totals):
    offsets, target, _, _, selected, cuts = rows
    own, at, values = sources
    score, squares = totals
    sums = np.empty(values.shape[1])
    for i in range(cuts[chunk], cuts[chunk + 1]):
        row = selected[i]
        mask = level.masks[i]
        sums[:] = 0.0
        if level.reads[i]:
            for q in range(offsets[row], offsets[row + 1]):
                successor = at[target[q]] & mask
                if successor:
                    add_at_bits(sums, values, target[q], successor)
        position = own[row]
        while mask:
            column = lowest_bit(mask)
            paths = values[position, column]
            dependency = paths * sums[column]
            score[row] += dependency
            squares[row] += dependency * dependency
            values[position, column] = 1.0 / paths + sums[column]
            mask &= mask - np.uint64(1)


@cached_njit(parallel=True)
def _dependencies(rows, level, sources, totals):
    for chunk in prange(rows.cuts.size - 1):
        _add_chunk(np.int64(chunk), rows, level, sources, totals)


def path_counts(rows: InRows, selected: IntArray, seen: Masks, sources: Sources) -> Masks:
    """One level of the forward phase of Brandes's algorithm. Returns the new bits of each selected row, uint64
    [selected], as `search_level` with one word for each source and row.

    For each new bit of a row, the number of shortest paths to the row is the sum of the values of its sources with this
    bit, added in the order of the row. The number is written to the values of the row's own vertex. Reads 12 bytes an
    entry, and 8 bytes for each path edge and bit.
    """
    fresh = np.empty(len(selected), np.uint64)
    with row_chunks(rows, selected) as chunks:
        _counts(chunks, seen, sources, fresh)
    return fresh


def path_dependencies(rows: InRows, level: LevelRows, sources: Sources, score: Floats, squares: Floats) -> None:
    """One level of the backward phase of Brandes's algorithm ("A faster algorithm for betweenness centrality", Journal
    of Mathematical Sociology 25(2), 2001).

    Here a row has the ends of the edges that leave its vertex, and `sources.at` has the bits of the next level. Let σ
    be the number of paths to a vertex, and δ the dependency on it. `sources.values` has σ for vertices of the row's
    level, and (1 + δ) / σ for vertices of the next level. δ of the row is its σ times the sum of (1 + δ) / σ over its
    entries. Adds δ to `score` [rows] and its square to `squares` [rows], and replaces σ of the row's own vertex by (1 +
    δ) / σ. Reads as `path_counts`.
    """
    with row_chunks(rows, level.rows) as chunks:
        _dependencies(chunks, level, sources, (score, squares))


@cached_njit
def _clear_lane(lane, lanes, unused, search, bits):
    offsets, seen = search.offsets, search.seen
    one, other, third = bits
    count = seen.size
    for v in range(lane * count // lanes, (lane + 1) * count // lanes):
        seen[v] = unused if offsets[v + 1] > offsets[v] else _ALL
        one[v] = other[v] = third[v] = _NONE


@cached_njit(parallel=True)
def _clear(lanes, unused, search, bits):
    for lane in prange(lanes):
        _clear_lane(np.int64(lane), lanes, unused, search, bits)


class Search(NamedTuple):
    """The rows of a block and the state of its searches. `_count` stops when the lists or `starts` are full."""

    offsets: NDArray[np.uint64]
    """[rows + 1] where the row of sources of each vertex starts in `source`."""
    source: NDArray[np.uint32]
    by_source: NDArray[np.uint64]
    """[rows + 1] where the row of targets of each vertex starts in `target`."""
    target: NDArray[np.uint32]

    seen: Masks
    """[rows] the bits of all levels so far."""
    marked: NDArray[np.bool_]
    """[rows] scratch memory, false between levels."""
    found: NDArray[np.uint32]
    """[rows] scratch memory."""
    values: Floats
    """[rows, columns] numbers of paths σ, then (1 + δ) / σ; see `path_dependencies`."""
    score: Floats
    """[rows]"""
    squares: Floats
    """[rows]"""

    listed: NDArray[np.uint32]
    """The vertices of all levels, one level after the other."""
    masks: Masks
    """For each element of `listed` the bits that are new in its level."""
    starts: LongArray
    """[levels + 1] where each level starts in `listed`."""
    work: Masks
    """[levels + 1, 2] the number of entries of each level's vertices, by source and by row."""
    counters: LongArray
    sums: Masks
    """[threads, SUMS]"""


class Counted(NamedTuple):
    """The rows that a level may reach, which are `rows` if `which` is _LISTED, and the level before the last level."""

    which: int
    rows: NDArray[np.uint32]
    before: NDArray[np.uint32]


class Added(NamedTuple):
    """A level whose dependencies are added up, and the level after the next one."""

    which: int
    level: NDArray[np.uint32]
    masks: Masks
    after: NDArray[np.uint32]


class Reach(NamedTuple):
    """Listed vertices with their targets and the bits `at` of each vertex. A vertex reaches a target if one of its bits
    is set in the `bits` of the target xor `flip`.
    """

    offsets: NDArray[np.uint64]
    target: NDArray[np.uint32]
    listed: NDArray[np.uint32]
    at: Masks
    bits: Masks
    flip: np.uint64


@cached_njit
def _mark_listed(level, at, search):
    """List the rows that a level reaches. Returns their number and their entries."""
    offsets, target, lengths = search.by_source, search.target, search.offsets
    seen, marked, found = search.seen, search.marked, search.found
    count, entries = 0, np.uint64(0)
    for v in level:
        mask = at[v]
        for q in range(offsets[v], offsets[v + _1]):
            row = target[q]
            if not marked[row] and mask & ~seen[row]:
                marked[row] = True
                found[count] = row
                count += 1
                entries += lengths[row + _1] - lengths[row]
    return count, entries


@cached_njit
def _mark_lane(reach, marked, counters):
    offsets, target, listed, at, bits, flip = reach
    while True:
        first = fetch_add(counters, _TAKEN, SHARE)
        if first >= listed.size:
            break
        for i in range(first, min(first + SHARE, listed.size)):
            v = listed[i]
            mask = at[v]
            for q in range(offsets[v], offsets[v + _1]):
                row = target[q]
                if mask & (bits[row] ^ flip):
                    marked[row] = True


@cached_njit(parallel=True)
def _mark_all(lanes, reach, marked, counters):
    """Mark the targets that listed vertices reach; see `Reach`."""
    for _ in prange(lanes):
        _mark_lane(reach, marked, counters)


@cached_njit
def _mark(lanes, reach, marked, counters):
    counters[_TAKEN] = 0
    if lanes > 1:
        _mark_all(lanes, reach, marked, counters)
    else:
        _mark_lane(reach, marked, counters)


@cached_njit
def _add_level(held, rows, fresh, search):
    """Append the first `held` vertices that a thread has kept to the list."""
    listed, masks = search.listed, search.masks
    to = fetch_add(search.counters, _LENGTH, held)
    for i in range(held):
        listed[to + i] = rows[i]
        masks[to + i] = fresh[i]


@cached_njit
def _count_lane(lane, lanes, level, bits, search):
    """Count the paths to the rows that a thread takes. Clears the level `before` in the third array of `bits`."""
    which, rows, before = level
    at, following, spare = bits
    offsets, source, by_source = search.offsets, search.source, search.by_source
    seen, marked, values = search.seen, search.marked, search.values
    counters, sums = search.counters, search.sums
    for i in range(lane * before.size // lanes, (lane + 1) * before.size // lanes):
        spare[before[i]] = _NONE
    kept, fresh, held = np.empty(KEPT, np.uint32), np.empty(KEPT, np.uint64), 0
    counts = np.empty(values.shape[1])
    pushed = size = left = read = np.uint64(0)
    while True:
        first = fetch_add(counters, _TAKEN, SHARE)
        if first >= rows.size:
            break
        for i in range(first, min(first + SHARE, rows.size)):
            row = rows[i] if which == _LISTED else np.uint32(i)
            if which == _EVERY:
                if seen[row] == _ALL:
                    continue
            elif marked[row]:
                marked[row] = False
            else:
                continue
            wanted, new = ~seen[row], _NONE
            length = offsets[row + _1] - offsets[row]
            for q in range(offsets[row], offsets[row + _1]):
                mask = at[source[q]] & wanted
                if mask:
                    if not new:
                        counts[:] = 0.0
                    new |= mask
                    add_at_bits(counts, values, source[q], mask)
            read += length
            if new:
                following[row] = new
                seen[row] |= new
                if seen[row] == _ALL:
                    left += length
                size += length
                pushed += by_source[row + _1] - by_source[row]
                if held == KEPT:
                    _add_level(held, kept, fresh, search)
                    held = 0
                kept[held], fresh[held] = row, new
                held += 1
                while new:
                    column = np.uint64(lowest_bit(new))
                    values[row, column] = counts[column]
                    new &= new - np.uint64(1)
    _add_level(held, kept, fresh, search)
    sums[lane, _PUSHED], sums[lane, _SIZE], sums[lane, _LEFT], sums[lane, _READ] = pushed, size, left, read


@cached_njit(parallel=True)
def _count_all(lanes, level, bits, search):
    for lane in prange(lanes):
        _count_lane(np.int64(lane), lanes, level, bits, search)


@cached_njit
def _rows_to_count(lanes, totals, level, at, search):
    """Choose the rows for which the level after `level` is counted. If `level` has few entries, only the rows that it
    reaches are listed or marked.

    Returns _LISTED, _MARKED or _EVERY, the list, and an upper bound of the entries of these rows.
    """
    if _FACTOR * totals[_PUSHED] >= totals[_LEFT]:
        return _EVERY, search.found, totals[_LEFT]
    totals[_READ] += totals[_PUSHED]
    if totals[_PUSHED] <= np.uint64(SERIAL_ENTRIES):
        count, entries = _mark_listed(level, at, search)
        return _LISTED, search.found[:count], entries
    reach = Reach(search.by_source, search.target, level, at, search.seen, _ALL)
    _mark(lanes, reach, search.marked, search.counters)
    return _MARKED, search.found, totals[_LEFT]


@cached_njit
def _count(lanes, levels, totals, bits, search):
    """Count paths level by level, from the last of `levels` on, until a level is empty or the lists are full.

    `totals` has the sums of the last level and of all rows that are left. Returns the number of levels that are not
    empty, whether the next level is empty, and the three arrays of `bits`. The first array has the bits of the last
    level.
    """
    at, following, spare = bits
    listed, starts, work, counters, sums = search.listed, search.starts, search.work, search.counters, search.sums
    while levels + 1 < starts.size and starts[levels] + search.seen.size <= listed.size:
        first, last = starts[levels - 1], starts[levels]
        level = listed[first:last]
        before = listed[starts[levels - 2] : first] if levels > 1 else level[:0]
        which, rows, entries = _rows_to_count(lanes, totals, level, at, search)
        reached = Counted(which, rows, before)
        counters[_TAKEN], counters[_LENGTH] = 0, last
        sums[:] = 0
        if lanes > 1 and (entries > np.uint64(SERIAL_ENTRIES) or before.size > SERIAL_ENTRIES):
            _count_all(lanes, reached, (at, following, spare), search)
        else:
            _count_lane(0, 1, reached, (at, following, spare), search)
        totals[_PUSHED], totals[_SIZE] = sums[:, _PUSHED].sum(), sums[:, _SIZE].sum()
        totals[_LEFT] -= sums[:, _LEFT].sum()
        totals[_READ] += sums[:, _READ].sum()
        if counters[_LENGTH] == last:
            return levels, True, at, following, spare
        work[levels, 0], work[levels, 1] = totals[_PUSHED], totals[_SIZE]
        levels += 1
        starts[levels] = counters[_LENGTH]
        at, following, spare = following, spare, at
    return levels, False, at, following, spare


@cached_njit
def _add_lane(lane, lanes, added, bits, search):
    """Add the dependencies of the vertices that a thread takes. Clears level `after` in the third array of `bits`."""
    which, level, level_masks, after = added
    at, now, spare = bits
    offsets, target, marked, values = search.by_source, search.target, search.marked, search.values
    score, squares, counters, sums = search.score, search.squares, search.counters, search.sums
    for i in range(lane * after.size // lanes, (lane + 1) * after.size // lanes):
        spare[after[i]] = _NONE
    found, read, finite = np.empty(values.shape[1]), np.uint64(0), True
    while True:
        first = fetch_add(counters, _TAKEN, SHARE)
        if first >= level.size:
            break
        for i in range(first, min(first + SHARE, level.size)):
            row, mask = level[i], level_masks[i]
            now[row] = mask
            found[:] = 0.0
            if which == _EVERY or marked[row]:
                if which == _MARKED:
                    marked[row] = False
                read += offsets[row + _1] - offsets[row]
                for q in range(offsets[row], offsets[row + _1]):
                    successor = at[target[q]] & mask
                    if successor:
                        add_at_bits(found, values, target[q], successor)
            total, total_squares = score[row], squares[row]
            while mask:
                column = np.uint64(lowest_bit(mask))
                paths = values[row, column]
                dependency = paths * found[column]
                total += dependency
                total_squares += dependency * dependency
                values[row, column] = 1.0 / paths + found[column]
                mask &= mask - np.uint64(1)
            score[row], squares[row] = total, total_squares
            finite &= np.isfinite(total)
    sums[lane, _READ], sums[lane, _LEFT] = read, not finite


@cached_njit(parallel=True)
def _add_all(lanes, added, bits, search):
    for lane in prange(lanes):
        _add_lane(np.int64(lane), lanes, added, bits, search)


@cached_njit(parallel=True)
def _set(lanes, listed, masks, now):
    for lane in prange(lanes):
        for i in range(lane * listed.size // lanes, (lane + 1) * listed.size // lanes):
            now[listed[i]] = masks[i]


@cached_njit
def _add(lanes, levels, bits, search):
    """Add up dependencies from the last level to level 1. Returns the entries read, and whether all sums are finite.

    The first array of `bits` is all 0, the second has the bits of the last level.
    """
    at, now, spare = bits
    listed, masks, starts, work, sums = search.listed, search.masks, search.starts, search.work, search.sums
    read, finite = np.uint64(0), True
    after = listed[:0]
    following = listed[:0]
    entries_after = np.uint64(0)
    for k in range(levels - 1, 0, -1):
        level, level_masks = listed[starts[k] : starts[k + 1]], masks[starts[k] : starts[k + 1]]
        entries = work[k, 0]
        which = _LISTED if not following.size else _EVERY
        if following.size and _FACTOR * entries_after < entries:
            which = _MARKED
            read += entries_after
            _set(lanes if level.size > SERIAL_ENTRIES else 1, level, level_masks, now)
            several = lanes if entries_after > np.uint64(SERIAL_ENTRIES) else 1
            reach = Reach(search.offsets, search.source, following, at, now, _NONE)
            _mark(several, reach, search.marked, search.counters)
        search.counters[_TAKEN] = 0
        sums[:] = 0
        added = Added(which, level, level_masks, after)
        if lanes > 1 and (entries > np.uint64(SERIAL_ENTRIES) or after.size > SERIAL_ENTRIES):
            _add_all(lanes, added, (at, now, spare), search)
        else:
            _add_lane(0, 1, added, (at, now, spare), search)
        read += sums[:, _READ].sum()
        finite &= sums[:, _LEFT].sum() == 0
        entries_after = work[k, 1]
        after, following = following, level
        at, now, spare = now, spare, at
    return read, finite


class BlockPaths:
    """Searches in one block that has the rows of all vertices.

    Computes bitwise the same as `path_counts` and `path_dependencies` for all levels. `into` has the sources of each
    vertex, and `by_source` its targets; both are the same for mutual edges. A run searches from up to `columns` sources
    at once, at most 64. Memory of the searches: 8 bytes for each row and column, 57 for each row, and 12 to 24 for each
    row in each of its levels.
    """

    def __init__(self, into: InRows, by_source: InRows, columns: int) -> None:
        count = into.rows
        self.score, self.squares = np.zeros(count), np.zeros(count)
        """[rows] sums of dependencies of all runs, and sums of their squares."""
        self.entries = 0
        """Entries read in all runs."""
        self._bits = [np.empty(count, np.uint64) for _ in range(3)]
        self._search = Search(
            offsets=places(into.offsets),
            source=places(into.source),
            by_source=places(by_source.offsets),
            target=places(by_source.source),
            seen=np.empty(count, np.uint64),
            marked=np.zeros(count, np.bool_),
            found=np.empty(count, np.uint32),
            values=np.empty((count, columns)),
            score=self.score,
            squares=self.squares,
            listed=np.empty(2 * count + columns, np.uint32),
            masks=np.empty(2 * count + columns, np.uint64),
            starts=np.zeros(FEW_LEVELS + 1, np.int64),
            work=np.zeros((FEW_LEVELS + 1, 2), np.uint64),
            counters=np.zeros(_WORDS, np.int64),
            sums=np.empty((get_num_threads(), SUMS), np.uint64),
        )

    def run(self, sources: LongArray) -> tuple[int, bool]:
        """Search from at most `columns` distinct rows. Returns the number of levels, and whether the sums of all rows
        that the search reached are finite.
        """
        lanes = get_num_threads()
        self._search = self._search._replace(sums=np.empty((lanes, SUMS), np.uint64))
        totals, levels, ended, bits = self._start(lanes, sources), 1, False, tuple(self._bits)
        self._search.starts[:2] = 0, len(sources)
        while not ended:
            levels, ended, *following = _count(lanes, levels, totals, bits, self._search)
            bits = tuple(following)
            if not ended:
                self._grow(levels)
        last, empty, spare = bits
        read, finite = _add(lanes, levels, (empty, last, spare), self._search)
        self.entries += int(totals[_READ]) + int(read)
        return levels, bool(finite)

    def _start(self, lanes: int, sources: LongArray) -> NDArray[np.uint64]:
        """Start level 0. Returns its sums."""
        columns, search = len(sources), self._search
        bit = np.uint64(1) << np.arange(columns, dtype=np.uint64)
        _clear(lanes, ~np.bitwise_or.reduce(bit), search, tuple(self._bits))
        complete = search.seen[sources] == _ALL
        search.seen[sources] |= bit
        self._bits[0][sources] = bit
        search.values[sources, np.arange(columns)] = 1.0
        search.listed[:columns], search.masks[:columns] = sources, bit
        size = search.offsets[sources + 1] - search.offsets[sources]
        totals = np.zeros(SUMS, np.uint64)
        totals[_PUSHED] = (search.by_source[sources + 1] - search.by_source[sources]).sum()
        totals[_LEFT] = search.offsets[-1] - size[(search.seen[sources] == _ALL) & ~complete].sum()
        return totals

    def _grow(self, levels: int) -> None:
        """Make room for twice as many vertices in lists, or for twice as many levels."""
        search = self._search
        if levels + 1 >= search.starts.size:
            self._search = search._replace(starts=_doubled(search.starts), work=_doubled(search.work))
        else:
            self._search = search._replace(listed=_doubled(search.listed), masks=_doubled(search.masks))


def _doubled(values: NDArray[Any]) -> NDArray[Any]:
    """A copy of the values with space for as many more."""
    found = np.empty((2 * len(values), *values.shape[1:]), values.dtype)
    found[: len(values)] = values
    return found
