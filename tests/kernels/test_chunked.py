"""Gathers over rows in chunks give the same bits as over the same rows in memory, whatever brings the chunks."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from chunked_rows import WAYS, FromMemory, Passing, SlowMemory, Way
from edgemill.kernels import programs
from edgemill.kernels.chunked import ChunkedRows, cut_chunks
from edgemill.kernels.chunked.rows import SEGMENTS
from edgemill.kernels.chunked.streaming import BUFFERS, PassingFeed, kept_bytes
from edgemill.kernels.graph import Extreme, InRows, Received

RANDOM = np.random.default_rng(11)
SOURCES = 3 * SEGMENTS // 2
LENGTHS = np.concatenate([RANDOM.integers(0, 40, 300), [5000, 0, 0, 3000], RANDOM.integers(0, 90, 100), [0]])
"""With rows without entries, and with two that are longer than a chunk."""
CHUNK = 2**10
SIZES = pytest.mark.parametrize("topology", [0, 60 * CHUNK, 2**30], ids=["none stays", "some stay", "all stay"])
BY_WAYS = pytest.mark.parametrize("way", WAYS)


def rows_of(lengths: NDArray[Any], weighted: bool = False) -> InRows:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    source = np.concatenate([np.sort(RANDOM.integers(0, SOURCES, length)) for length in lengths.tolist()])
    return InRows(offsets, source.astype(np.int32), RANDOM.random(offsets[-1]) if weighted else None)


PLAIN, WEIGHTED = rows_of(LENGTHS), rows_of(LENGTHS, True)


class Both:
    """The same rows in memory and in chunks, on one backend."""

    def __init__(self, way: Way, rows: InRows, topology: int, folder: Path) -> None:
        self.put, self.get = way.backend.put, way.backend.get
        weight = None if rows.weight is None else self.put(rows.weight, np.float64)
        self.whole = InRows(self.put(rows.offsets, np.int64), self.put(rows.source), weight)
        self.chunked = way.put(rows, CHUNK * (4 if rows.weight is None else 12), topology, folder)

    def same(self, call: Any, times: int = 3) -> None:
        """Successive visits find what the buffers have left from the last one."""
        known = self._arrays(call(self.whole))
        for _ in range(times):
            found = self._arrays(call(self.chunked))
            assert [(one.dtype, one.tobytes()) for one in found] == [(one.dtype, one.tobytes()) for one in known]

    def _arrays(self, found: Any) -> list[NDArray[Any]]:
        return [self.get(one) for one in (found if isinstance(found, tuple) else (found,))]


@BY_WAYS
@SIZES
@pytest.mark.parametrize("along", ["", "multiply"])
def test_sums(way: Way, topology: int, along: str, tmp_path: Path) -> None:
    both = Both(way, WEIGHTED if along else PLAIN, topology, tmp_path)
    values = both.put(RANDOM.random(SOURCES) * 10.0 ** RANDOM.integers(-9, 9, SOURCES), np.float64)
    both.same(lambda rows: programs.row_sums(rows, values, along))


SELECTIONS: dict[str, Any] = {
    "all": None,
    "none": np.zeros(0, np.int32),
    "most": np.flatnonzero(RANDOM.random(len(LENGTHS)) < 0.8).astype(np.int32),
    "few": np.sort(RANDOM.permutation(len(LENGTHS))[:9]).astype(np.int32),
    "long": np.array([0, 300, 303], np.int32),
}
SELECTED = pytest.mark.parametrize("selected", SELECTIONS.values(), ids=SELECTIONS)


@BY_WAYS
@SELECTED
@pytest.mark.parametrize("active", [1.0, 0.3, 0.0], ids=["all send", "some send", "none sends"])
def test_extremes_and_first_sources(way: Way, selected: Any, active: float, tmp_path: Path) -> None:
    both = Both(way, WEIGHTED, 70 * CHUNK, tmp_path)
    sends = RANDOM.random(SOURCES) < active
    sends[SOURCES // 2 :] = False  # so that segments without a sender are skipped
    values = both.put(np.where(sends, RANDOM.integers(0, 9, SOURCES), np.inf), np.float64)
    rows = None if selected is None else both.put(selected)
    both.same(lambda one: programs.row_extremes(one, rows, values, Extreme(along="add")))
    receiving = None if selected is None else both.put(np.isin(np.arange(len(LENGTHS)), selected), np.bool_)
    mask = both.put(sends, np.bool_)
    both.same(lambda one: programs.first_active_sources(one, receiving, mask))


@BY_WAYS
@SELECTED
def test_modes_and_h_indices(way: Way, selected: Any, tmp_path: Path) -> None:
    both = Both(way, PLAIN, 70 * CHUNK, tmp_path)
    values = both.put(RANDOM.integers(0, 30, SOURCES), np.int64)
    rows = None if selected is None else both.put(selected)
    both.same(lambda one: programs.row_modes(one, rows, values))
    both.same(lambda one: programs.row_h_indices(one, rows, values))


@BY_WAYS
def test_rows_are_read_where_they_lie(way: Way, tmp_path: Path) -> None:
    """What has no loop over chunks: union-find, and pushes over the transposed rows."""
    both = Both(way, WEIGHTED, 0, tmp_path)
    own, changed = both.put(np.arange(len(LENGTHS))), both.put([3, 50, SOURCES - 1])
    both.same(lambda rows: programs.connected_sources(rows, own, SOURCES, False))
    both.same(lambda rows: programs.source_counts(rows, SOURCES))

    def pushed(rows: InRows) -> Any:
        transposed = programs.transpose_rows(rows, SOURCES)
        out, best = both.put(np.full(rows.rows, np.inf), np.float64), both.put(np.full(rows.rows, -1))
        sent = both.put([1.0, 0.5, 0.25], np.float64)
        touched = programs.push(transposed, changed, sent, Extreme(along="add"), Received(out, best))
        rows_by_source = np.diff(both.get(transposed.offsets))
        return out, best, np.sort(touched), both.put(rows_by_source, np.int64), transposed.weight

    both.same(pushed, 1)


@given(st.lists(st.integers(0, 30), max_size=40), st.integers(1, 40))
def test_chunks_are_whole_rows(lengths: list[int], entries: int) -> None:
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    chunks = cut_chunks(offsets, entries)
    assert [chunk.first for chunk in chunks] + [len(lengths)] == [0, *(chunk.last for chunk in chunks)][
        : len(chunks) + 1
    ]
    for number, chunk in enumerate(chunks):
        assert chunk.number == number
        assert (chunk.begin, chunk.end) == (offsets[chunk.first], offsets[chunk.last])
        assert len(chunk) <= entries or chunk.last - chunk.first == 1
        assert chunk.first < chunk.last
    for chunk, after in pairwise(chunks):
        assert len(chunk) + lengths[after.first] > entries


def streamed(topology_chunks: int, late: bool = True) -> tuple[ChunkedRows, list[int]]:
    """Twenty equal chunks, of which some stay, and their visits."""
    rows = InRows(np.arange(0, 201, 10), RANDOM.integers(0, 9, 200).astype(np.int32))
    return Passing(late).put(rows, 40, 40 * topology_chunks, Path()), list(range(20))


def test_bytes_that_are_copied() -> None:
    """Chunks that stay are copied once, and those that a visit leaves in the buffers are not copied by the next one."""
    rows, everyone = streamed(BUFFERS + 5)
    feed: Any = rows.feed
    assert feed.kept == 5
    copied = []
    for _ in range(4):
        before = feed.bytes_copied
        assert sorted(chunk.number for chunk, _ in rows.visit(everyone)) == everyone
        copied.append((feed.bytes_copied - before) // 40)
    assert copied == [20, 15 - BUFFERS, 15 - BUFFERS, 15 - BUFFERS]
    before = feed.bytes_copied
    assert sorted(chunk.number for chunk, _ in rows.visit([0, 2, 6])) == [0, 2, 6]
    assert feed.bytes_copied == before


def test_skipped_chunks_are_not_copied() -> None:
    """Nor are chunks of which few entries are read."""
    rows = rows_of(np.full(400, 16))
    for row in range(200):
        rows.source[16 * row : 16 * row + 16] %= SOURCES // 4
    for row in range(200, 400):
        rows.source[16 * row : 16 * row + 16] = np.sort(SOURCES // 2 + rows.source[16 * row : 16 * row + 16] // 2)
    chunked = Passing(late=True).put(rows, 4 * 16 * 20, 0, Path())
    feed: Any = chunked.feed
    active = np.zeros(SOURCES, np.bool_)
    active[: SOURCES // 4] = True
    programs.first_active_sources(chunked, None, active)
    assert feed.bytes_copied == 4 * len(rows)  # what the chunks have is not known before
    programs.first_active_sources(chunked, None, active)
    assert feed.bytes_copied == 1.5 * 4 * len(rows)

    before = feed.bytes_copied, feed.bytes_direct
    values = RANDOM.random(SOURCES)
    programs.row_modes(chunked, np.array([5, 300], np.int32), values.astype(np.int64))
    assert (feed.bytes_copied - before[0], feed.bytes_direct - before[1]) == (0, 64)  # the first chunk is in a buffer


def test_chunks_that_stay_fit_beside_the_buffers() -> None:
    assert kept_bytes(1000, 50, 1000) == 1000
    assert kept_bytes(1000, 50, 999) == 999 - BUFFERS * 50
    assert kept_bytes(1000, 500, 999) == 0


def test_a_visit_that_is_left_early_leaves_whole_chunks() -> None:
    rows, everyone = streamed(BUFFERS + 2, late=True)
    known = {
        chunk.number: part.source.copy() for chunk, part in FromMemory().put(rows.home, 40, 0, Path()).visit(everyone)
    }
    for stop in (1, 4, 9):
        for at, _ in enumerate(rows.visit(everyone)):
            if at == stop:
                break
        for chunk, part in rows.visit(everyone):
            assert part.source.tolist() == known[chunk.number].tolist()


def test_a_place_is_not_filled_while_it_is_read() -> None:
    """The test's own memory notices it."""
    rows, _ = streamed(0)
    memory = SlowMemory(rows.home, late=True)
    feed = PassingFeed(rows.feed.chunks, memory, 0)
    next(feed.visit([0, 1, 2, 3]))
    place = memory.slots[0]
    place.is_read = True
    with pytest.raises(AssertionError, match="launched yet"):
        memory.copy(place, feed.chunks[5])
