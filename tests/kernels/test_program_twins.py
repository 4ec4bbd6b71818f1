"""Gathers of vertex programs on the GPU, against those on the CPU, which `test_programs` compares with plain loops."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends import OnGpu
from edgemill.kernels import programs
from edgemill.kernels.cpu import programs as cpu
from edgemill.kernels.graph import Extreme, InRows, RankState, Received
from edgemill.kernels.pagerank import ranks
from edgemill.tasks.programs.totals import exact_sum

SOURCES = 700
RANDOM = np.random.default_rng(7)
LENGTHS = [0, 1, 2, 3, 4, 5, 8, 9, 16, 17, 31, 32, 33, 64, 65, 128, 129, 2047, 2048, 2049, 0, 9000, 1, 3]
"""Around the limits of the classes of rows."""
LENGTHS += RANDOM.integers(0, 60, 100).tolist()
SOME = RANDOM.permutation(len(LENGTHS))[:60].astype(np.int32)
GPU = OnGpu()
SELECTED = pytest.mark.parametrize("selected", [None, SOME], ids=["all", "some"])
KINDS = pytest.mark.parametrize(
    ("kind", "along"),
    [("int32", ""), ("int64", ""), ("float64", ""), ("float64", "add"), ("float64", "multiply")],
)


def made(lengths: list[int], seed: int = 1) -> InRows:
    """Rows of the given lengths with random ascending sources, which may repeat, and weights."""
    random = np.random.default_rng(seed)
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    source = np.concatenate([np.sort(random.integers(0, SOURCES, length)) for length in lengths])
    return InRows(offsets, source.astype(np.int32), random.random(offsets[-1]))


def put(array: NDArray[Any] | None) -> Any:
    return None if array is None else GPU.put(array, array.dtype)


def put_rows(rows: InRows) -> InRows:
    return InRows(put(rows.offsets), put(rows.source), put(rows.weight))


def test_twins_have_the_same_functions() -> None:
    gpu: Any = pytest.importorskip("edgemill.kernels.gpu.programs", exc_type=ImportError)
    assert gpu.__all__ == cpu.__all__
    for name in cpu.__all__:
        own, other = (list(inspect.signature(getattr(module, name)).parameters) for module in (cpu, gpu))
        assert own == other


@pytest.mark.gpu
@pytest.mark.parametrize("along", ["", "add", "multiply"])
def test_sums(along: str) -> None:
    rows = made(LENGTHS)
    values = RANDOM.random(SOURCES) * 10.0 ** RANDOM.integers(-9, 9, SOURCES)
    found = GPU.get(programs.row_sums(put_rows(rows), put(values), along))
    assert np.allclose(found, programs.row_sums(rows, values, along), rtol=1e-12, atol=0)
    for row in range(len(LENGTHS)):  # by itself, elsewhere: the same bits
        part = slice(rows.offsets[row], rows.offsets[row + 1])
        assert rows.weight is not None
        one = InRows(np.array([0, 0, LENGTHS[row]]), rows.source[part], rows.weight[part])
        assert GPU.get(programs.row_sums(put_rows(one), put(values), along))[1] == found[row]


@pytest.mark.gpu
@KINDS
@SELECTED
@pytest.mark.parametrize("largest", [False, True])
def test_extremes(kind: str, along: str, selected: Any, largest: bool) -> None:
    rows = made(LENGTHS)
    values = -RANDOM.integers(-50, 50, SOURCES).astype(kind)  # the zeros of float64 are -0.0
    worst = Extreme(largest).worst(np.dtype(kind))
    values[RANDOM.random(SOURCES) < 0.5] = worst
    extreme = Extreme(largest, along)
    known = programs.row_extremes(rows, selected, values, extreme)
    found = programs.row_extremes(put_rows(rows), put(selected), put(values), extreme)
    for own, other in zip(known, found, strict=True):
        assert own.tobytes() == GPU.get(other).tobytes()


@pytest.mark.gpu
@pytest.mark.parametrize("receiving", [None, RANDOM.random(len(LENGTHS)) < 0.5], ids=["all", "some"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.01, 0.3])
def test_first_active_sources(receiving: Any, share: float) -> None:
    rows, active = made(LENGTHS), RANDOM.random(SOURCES) < share
    *found, read = programs.first_active_sources(put_rows(rows), put(receiving), put(active))
    *own, entries = programs.first_active_sources(rows, receiving, active)
    assert read == entries
    for one, other in zip(own, found, strict=True):
        assert np.array_equal(one, GPU.get(other))
    assert programs.count_entries(put_rows(rows), put(receiving)) == programs.count_entries(rows, receiving)


@pytest.mark.gpu
@pytest.mark.parametrize("entries", [1, 2, 3])
@pytest.mark.parametrize("kind", ["int32", "int64"])
def test_connected_sources(entries: int, kind: str) -> None:
    """About as many entries as sources leave small components beside a large one."""
    one, other = RANDOM.integers(0, SOURCES, (2, entries * SOURCES // 3))
    row, source = np.concatenate([one, other]), np.concatenate([other, one])
    by = np.lexsort((source, row))
    offsets = np.searchsorted(row[by], np.arange(SOURCES + 1)).astype(np.int64)
    rows, own = InRows(offsets, source[by].astype(np.int32)), np.arange(SOURCES, dtype=np.int32)
    for symmetric in (False, True):
        root = programs.connected_sources(rows, own, SOURCES, symmetric)
        there = programs.connected_sources(put_rows(rows), put(own), SOURCES, symmetric)
        assert np.array_equal(GPU.get(there), root)
        position = RANDOM.choice(SOURCES, 40, replace=False).astype(np.int32)
        values = RANDOM.integers(0, 9, 40).astype(kind)
        known = np.full(SOURCES, 5, kind), np.zeros(SOURCES, np.bool_)
        least, lowered = map(put, known)
        programs.lower_values(root, position, values, *known)
        programs.lower_values(there, put(position), put(values), least, lowered)
        assert np.array_equal(GPU.get(lowered), known[1]) and np.array_equal(GPU.get(least), known[0])
        found = programs.lowered_rows(there, put(own), least, lowered)
        for mine, others in zip(programs.lowered_rows(root, own, *known), found, strict=True):
            assert np.array_equal(GPU.get(others), mine)


@pytest.mark.gpu
@SELECTED
@pytest.mark.parametrize("kind", ["int32", "int64"])
@pytest.mark.parametrize("span", [3, 40, 5000])
def test_modes_and_h_indices(selected: Any, kind: str, span: int) -> None:
    rows, values = made(LENGTHS), RANDOM.integers(-3, span, SOURCES).astype(kind)
    values[::7] = np.iinfo(kind).min
    for gather in (programs.row_modes, programs.row_h_indices):
        found = gather(put_rows(rows), put(selected), put(values))
        assert np.array_equal(GPU.get(found), gather(rows, selected, values))


@pytest.mark.gpu
@KINDS
@pytest.mark.parametrize("largest", [False, True])
@pytest.mark.parametrize("bounded", [False, True])
def test_push_and_transpose(kind: str, along: str, largest: bool, bounded: bool) -> None:
    rows, count = made(LENGTHS), len(LENGTHS)
    transposed = programs.transpose_rows(rows, SOURCES)
    there = programs.transpose_rows(put_rows(rows), SOURCES)
    for name in ("offsets", "source", "weight"):
        assert np.array_equal(GPU.get(getattr(there, name)), getattr(transposed, name))
    for size in (0, 1, 20):
        changed = np.sort(RANDOM.choice(SOURCES, size, replace=False)).astype(np.int32)
        values = -RANDOM.integers(-4, 4, size).astype(kind)  # the zeros of float64 are -0.0
        limits: Any = np.finfo if kind == "float64" else np.iinfo
        worst = limits(kind).min if largest else limits(kind).max
        worst = float("-inf" if largest else "inf") if kind == "float64" else worst
        bound = RANDOM.integers(-4, 4, count).astype(kind) if bounded else None
        scratch = np.full(count, -1, np.int32), np.full(count, worst, kind)
        best, out = map(put, scratch)
        extreme = Extreme(largest, along)
        known = programs.push(transposed, changed, values, extreme, Received(scratch[1], scratch[0], bound))
        received = Received(out, best, put(bound))
        found = GPU.get(programs.push(there, put(changed), put(values), extreme, received))
        assert sorted(found.tolist()) == sorted(known.tolist())
        assert np.array_equal(GPU.get(best), scratch[0])
        assert GPU.get(out)[known].tobytes() == scratch[1][known].tobytes()
        assert np.array_equal(
            GPU.get(programs.touched_rows(there, put(changed), count)),
            programs.touched_rows(transposed, changed, count),
        )


@pytest.mark.gpu
@pytest.mark.parametrize(
    "values",
    [
        RANDOM.random(3000) * 10.0 ** RANDOM.integers(-300, 300, 3000) - 1e5,
        RANDOM.random(5000) / 1e9,
        np.array([1e308, -1e308, 5e-324, np.nan, np.inf]),
        np.array([-0.0, 5e-324, -5e-324, 1e-310]),
        np.zeros(0),
    ],
    ids=["wide", "narrow", "not finite", "least", "none"],
)
def test_sums_without_rounding(values: NDArray[np.float64]) -> None:
    arrays = [values, values > 1, (1e3 * RANDOM.random(40)).astype(np.int32), -values[::-1].copy()]
    assert programs.exact_sums([put(one) for one in arrays]) == programs.exact_sums(arrays)


@pytest.mark.gpu
def test_sums_of_values_that_no_sample_shows() -> None:
    """Large values where the kernel that estimates the largest one does not look."""
    values = np.ones(4000)
    values[[100, 1300]] = 1e200, 1e-200
    assert programs.exact_sums([put(values)]) == programs.exact_sums([values])


@pytest.mark.gpu
def test_lengths() -> None:
    rows = made(LENGTHS)
    for selected in (SOME, SOME[:0]):
        assert programs.count_selected(put_rows(rows), put(selected)) == programs.count_selected(rows, selected)
    assert programs.count_selected(rows, SOME) == sum(LENGTHS[row] for row in SOME)


def edges_with_long_rows() -> tuple[NDArray[np.int32], NDArray[np.int32], int]:
    """(low, high, vertices): two vertices with half of all as neighbours each, a path of the others, and random edges.
    Rows are longer than what a thread or a warp reads at a time, and one vertex has no edges.
    """
    hubs, path = (2000, 2001), np.arange(1999)
    pairs = [(int(v), hubs[v % 2]) for v in range(1900)] + [(int(v), int(v) + 1) for v in path] + [hubs]
    pairs += [(min(u, v), max(u, v)) for u, v in RANDOM.integers(0, 300, (500, 2)).tolist() if u != v]
    low, high = np.array(sorted(set(pairs)), np.int32).T
    return low.copy(), high.copy(), 2003


def test_rows_of_both_ways() -> None:
    low, high, count = edges_with_long_rows()
    rows = programs.both_ways(low, high, None, count)
    by = np.lexsort((np.concatenate([low, high]), np.concatenate([high, low])))
    assert rows.source.tolist() == np.concatenate([low, high])[by].tolist()
    assert np.diff(rows.offsets).tolist() == np.bincount(np.concatenate([low, high]), minlength=count).tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_of_both_ways_on_the_gpu(weighted: bool) -> None:
    low, high, count = edges_with_long_rows()
    weight = RANDOM.random(len(low)) if weighted else None
    known = programs.both_ways(low, high, weight, count)
    found = programs.both_ways(put(low), put(high), put(weight), count)
    assert GPU.get(found.offsets).tolist() == known.offsets.tolist()
    assert GPU.get(found.source).tolist() == known.source.tolist()
    assert (found.weight is None) == (not weighted)
    if known.weight is not None:
        assert GPU.get(found.weight).tolist() == known.weight.tolist()


@pytest.mark.gpu
@pytest.mark.parametrize("start", [0, 1, 1000, 1999, 2000, 2001, 2002])
@pytest.mark.parametrize("directed", [False, True])
def test_searches(start: int, directed: bool) -> None:
    """From hubs, whose neighbours read rows, from a path, which pushes for long, and from a vertex without edges."""
    low, high, count = edges_with_long_rows()
    rows = programs.both_ways(low, high, None, count)
    out = rows
    if directed:
        rows = InRows(np.searchsorted(low, np.arange(count + 1)).astype(np.int64), high)
        out = programs.transpose_rows(rows, count)
    there = put_rows(rows)
    away = put_rows(out) if directed else there
    known, found = programs.search(rows, out, start), programs.search(there, away, start)
    assert GPU.get(found[0]).tolist() == known[0].tolist()
    assert GPU.get(found[1]).tolist() == known[1].tolist()
    assert found[2] == known[2]
    level = known[0]
    assert level[start] == 0 and (level >= 0).sum() >= (1 if start == 2002 or directed else 2002)


@pytest.mark.gpu
@pytest.mark.parametrize("steps", [0, 1, 7, None])
@pytest.mark.parametrize("directed", [False, True])
def test_ranks(steps: int | None, directed: bool) -> None:
    """Of vertices without edges, too, and of sinks. They have the bits of sums and arithmetic one after the other."""
    low, high, count = edges_with_long_rows()
    rows = programs.both_ways(low, high, None, count + 3)
    if directed:
        rows = InRows(np.searchsorted(low, np.arange(count + 4)).astype(np.int64), high)
    degree = np.bincount(rows.source, minlength=count + 3)
    known, done, moved = ranks(rows, degree, 0.85, steps, 1e-8, exact_sum)
    there = put_rows(rows)
    found, taken, change = ranks(there, put(degree), 0.85, steps, 1e-8, exact_sum)
    assert taken == done and change == pytest.approx(moved, rel=1e-9)
    rank = np.full(count + 3, 1 / (count + 3))
    for _ in range(done):
        got = GPU.get(programs.row_sums(there, put(rank / np.maximum(degree, 1)), ""))
        rank = 0.85 * got + (1 - 0.85 + 0.85 * exact_sum(rank[degree == 0])) * (1 / (count + 3))
    assert GPU.get(found).tolist() == rank.tolist()
    assert np.allclose(known, rank, rtol=1e-12, atol=0)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [0, 1, 33, 70_000])
def test_next_ranks(count: int) -> None:
    """The bits of twins are equal: no product and sum became one operation."""
    degree = RANDOM.integers(1, 2000, count).astype(np.float64)
    rank, got = RANDOM.random(count), RANDOM.random(count)
    results: list[list[Any]] = []
    for place in (np.copy, put):
        ranks_, degrees, sums = place(rank), place(degree), place(got)
        first, shares, moved = (place(np.zeros(count)) for _ in range(3))
        state = RankState(ranks_, degrees, moved, shares)
        programs.rank_shares(state._replace(shares=first))
        programs.next_ranks(sums, 0.85, 0.01, state)
        results.append([ranks_, first, shares, moved])
    for own, there in zip(*results, strict=True):
        assert np.array_equal(GPU.get(there), own)
    assert np.array_equal(results[0][0], 0.85 * got + 0.01)


@pytest.mark.gpu
def test_links() -> None:
    pairs = sorted({(max(u, v), min(u, v)) for u, v in RANDOM.integers(0, 40, (300, 2)).tolist() if u != v})
    offsets = np.searchsorted([high for high, _ in pairs], np.arange(41)).astype(np.int64)
    lower = np.array([low for _, low in pairs], np.int32)
    times = RANDOM.integers(1, 3, len(pairs)).astype(np.uint8)
    found = programs.count_all_links(put(offsets), put(lower), put(times))
    assert np.array_equal(GPU.get(found), programs.count_all_links(offsets, lower, times))
    members = [np.flatnonzero(RANDOM.random(40) < share) for share in (0, 0.1, 0.5, 0.9, 1)]
    ends = np.concatenate(([0], np.cumsum([len(own) for own in members])))
    rows = InRows(ends.astype(np.int64), np.concatenate(members).astype(np.int32))
    one, other = np.array([high for high, _ in pairs], np.int32), lower
    known = np.arange(len(members))
    on_device = put(known)
    programs.count_links(programs.transpose_rows(rows, 40), one, other, times, known)
    there = programs.transpose_rows(put_rows(rows), 40)
    programs.count_links(there, put(one), put(other), put(times), on_device)
    assert np.array_equal(GPU.get(on_device), known) and known[-1] == 4 + times.sum()
