"""Gathers of vertex programs, against plain loops over the rows."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.kernels import programs
from edgemill.kernels.cpu.programs import reductions
from edgemill.kernels.graph import Extreme, InRows, Received
from edgemill.kernels.runtime.threads import kernel_threads
from foreign import to_foreign

RANDOM = np.random.default_rng(7)


def rows_of(lengths: list[int], sources: int, weighted: bool = False) -> InRows:
    """Rows of the given lengths with random ascending sources."""
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    source = [np.sort(RANDOM.integers(0, sources, length)) for length in lengths]
    weight = RANDOM.random(offsets[-1]) if weighted else None
    return InRows(offsets, np.concatenate(source).astype(np.int32), weight)


def entries(rows: InRows, row: int) -> NDArray[Any]:
    return rows.source[rows.offsets[row] : rows.offsets[row + 1]]


LENGTHS = [
    0,
    1,
    3,
    reductions.SEGMENT - 1,
    reductions.SEGMENT,
    reductions.SEGMENT + 1,
    0,
    reductions.LONG,
    reductions.LONG + 1,
    reductions.LONG + 4099,
    7,
]


@pytest.mark.parametrize("along", ["", "add", "multiply"])
def test_sums_are_determined_by_the_row(along: str) -> None:
    """Threads share long rows, and short rows follow them: each sum is bitwise equal to that of the row by itself."""
    rows = rows_of(LENGTHS, 500, weighted=True)
    values = RANDOM.random(500) * 10.0 ** RANDOM.integers(-9, 9, 500)
    with kernel_threads(2):
        found = programs.row_sums(rows, values, along)
    assert rows.weight is not None
    for row, length in enumerate(LENGTHS):
        part = slice(rows.offsets[row], rows.offsets[row + 1])
        received, weight = values[rows.source[part]], rows.weight[part]
        received = received + weight if along == "add" else received * weight if along == "multiply" else received
        assert math.isclose(found[row], math.fsum(received), rel_tol=1e-11, abs_tol=0)
        one = InRows(np.array([0, length]), rows.source[part], weight)
        with kernel_threads(1):
            assert programs.row_sums(one, values, along)[0] == found[row]


@pytest.mark.parametrize("kind", [np.int32, np.int64, np.float64])
@pytest.mark.parametrize("largest", [False, True])
def test_extremes_and_their_sources(kind: Any, largest: bool) -> None:
    rows = rows_of([0, 1, 5, 40, 0, 9], 12)
    values = RANDOM.integers(-5, 5, 12).astype(kind)
    worst = Extreme(largest).worst(np.dtype(kind))
    assert worst == (
        (-np.inf if largest else np.inf)
        if kind is np.float64
        else np.iinfo(kind).__getattribute__("min" if largest else "max")
    )
    values[[2, 5]] = worst
    for selected in (None, np.array([5, 0, 3], np.int32)):
        found, best = programs.row_extremes(rows, selected, values, Extreme(largest))
        for i, row in enumerate(range(6) if selected is None else selected):
            active = [s for s in entries(rows, row) if values[s] != worst]
            value = (max if largest else min)((values[s] for s in active), default=worst)
            assert found[i] == value
            assert best[i] == next((s for s in active if values[s] == value), -1)


@given(st.data())
@settings(max_examples=30)
def test_push_and_pull_agree(data: st.DataObject) -> None:
    count = data.draw(st.integers(1, 12))
    lengths = data.draw(st.lists(st.integers(0, 9), min_size=1, max_size=9))
    along = data.draw(st.sampled_from(["", "add", "multiply"]))
    rows = rows_of(lengths, count, weighted=bool(along))
    transposed = programs.transpose_rows(rows, count)
    changed = np.array(sorted(data.draw(st.sets(st.integers(0, count - 1)))), np.int32)
    values = np.full(count, np.inf)
    values[changed] = RANDOM.integers(0, 4, len(changed))
    out, best = np.full(len(lengths), np.inf), np.full(len(lengths), -1, np.int32)
    touched = programs.push(transposed, changed, values[changed], Extreme(along=along), Received(out, best))
    pulled, source = programs.row_extremes(rows, None, values, Extreme(along=along))
    bound, lower = RANDOM.integers(0, 4, len(lengths)).astype(np.float64), np.full(len(lengths), np.inf)
    received = Received(lower, None, bound)
    better = programs.push(transposed, changed, values[changed], Extreme(along=along), received)
    assert sorted(better.tolist()) == np.flatnonzero(pulled < bound).tolist()
    assert lower.tolist() == np.where(pulled < bound, pulled, np.inf).tolist()
    assert sorted(touched.tolist()) == np.flatnonzero(source >= 0).tolist()
    assert sorted(touched.tolist()) == programs.touched_rows(transposed, changed, len(lengths)).tolist()
    assert out[touched].tolist() == pulled[touched].tolist()
    assert best.tolist() == source.tolist()
    active = np.isfinite(values)
    first = {row: next((s for s in entries(rows, row) if active[s]), -1) for row in range(len(lengths))}
    found, reached, read = programs.first_active_sources(rows, None, active)
    assert read == len(rows)
    assert dict(zip(found.tolist(), reached.tolist(), strict=True)) == {r: s for r, s in first.items() if s >= 0}
    receiving = np.array([data.draw(st.booleans()) for _ in lengths])
    some, sources, read = programs.first_active_sources(rows, receiving, active)
    assert read == programs.count_entries(rows, receiving)
    assert (some.tolist(), sources.tolist()) == (found[receiving[found]].tolist(), reached[receiving[found]].tolist())
    assert programs.count_entries(rows, receiving) == int(np.diff(rows.offsets)[receiving].sum())


@given(st.integers(1, 60), st.integers(0, 150), st.booleans(), st.integers(0, 2**31))
@settings(max_examples=60)
def test_connected_sources(sources: int, edges: int, whole: bool, seed: int) -> None:
    """Of a whole graph in both directions, and of some rows over more sources."""
    drawn = np.random.default_rng(seed)
    own = np.arange(sources) if whole else np.sort(drawn.permutation(sources)[: drawn.integers(1, sources + 1)])
    pairs = [(int(drawn.choice(own)), int(drawn.integers(0, sources))) for _ in range(edges)]
    into = sorted({*pairs, *((t, s) for s, t in pairs if whole or (t in own and s in own))})
    offsets = np.searchsorted([s for s, _ in into], np.append(own, sources)).astype(np.int64)
    rows = InRows(offsets, np.array([t for _, t in into], np.int32))
    with kernel_threads(2):
        root = programs.connected_sources(rows, own.astype(np.int32), sources, whole)
    known = nx.Graph(into)
    known.add_nodes_from(range(sources))
    assert root.tolist() == [min(nx.node_connected_component(known, v)) for v in range(sources)]

    least, lowered = np.full(sources, sources, np.int64), np.zeros(sources, np.bool_)
    at = drawn.integers(0, sources, 5).astype(np.int32)
    values = drawn.integers(0, sources + 3, 5)
    programs.lower_values(root, at, values, least, lowered)
    best = {int(root[v]): min(int(values[i]) for i in range(5) if root[at[i]] == root[v]) for v in at}
    best = {v: value for v, value in best.items() if value < sources}
    assert {int(v): int(least[v]) for v in np.flatnonzero(lowered)} == best
    found, got = programs.lowered_rows(root, own.astype(np.int32), least, lowered)
    assert found.tolist() == [row for row, v in enumerate(own) if int(root[v]) in best]
    assert got.tolist() == [best[int(root[own[row]])] for row in found]


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_modes_and_h_indices(kind: Any) -> None:
    rows = rows_of([0, 1, 2, 3, 8, 30, 300, 5], 40)
    values = RANDOM.integers(0, 9, 40).astype(kind)
    for selected in (None, np.array([6, 0, 2], np.int32)):
        modes = programs.row_modes(rows, selected, values)
        h_indices = programs.row_h_indices(rows, selected, values)
        for i, row in enumerate(range(8) if selected is None else selected):
            received = values[entries(rows, row)].tolist()
            counts = Counter(received)
            assert modes[i] == min(counts, key=lambda value: (-counts[value], value), default=-1)
            assert h_indices[i] == max(
                k for k in range(len(received) + 1) if sum(value >= k for value in received) >= k
            )


def test_modes_of_values_with_hash_collisions() -> None:
    """Values whose hashes collide, and negative values."""
    values = np.array([-1, 1 << 40, 3, 1 << 41, -1, 1 << 40, (1 << 63) - 1, -(1 << 63)], np.int64)
    rows = InRows(np.array([0, 8, 12]), np.array([0, 1, 2, 3, 4, 5, 6, 7, 1, 5, 6, 7], np.int32))
    assert programs.row_modes(rows, None, values).tolist() == [-1, 1 << 40]


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), max_size=60))
@settings(max_examples=60)
def test_sums_without_rounding(values: list[float]) -> None:
    [(total, not_finite)] = programs.exact_sums([np.array(values, np.float64)])
    assert not_finite == 0
    assert total == sum(map(_units, values))


def _units(value: float) -> int:
    above, below = value.as_integer_ratio()
    return above * (1 << 1074) // below


def test_exact_sums_count_values_that_are_not_finite() -> None:
    arrays = np.array([1.0, np.nan, np.inf, -np.inf]), np.array([True, True]), np.array([1e308, -1e308, 5e-324])
    one, *others = programs.exact_sums(arrays)
    assert one[1] == 3 and others == [(2, 0), (1, 0)]


def test_edges_between_sources_are_counted() -> None:
    rows = InRows(np.array([0, 3, 5, 5]), np.array([0, 1, 2, 0, 2], np.int32))
    transposed = programs.transpose_rows(rows, 3)
    found = np.array([0, 10, 0])
    one, other = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    programs.count_links(transposed, one, other, np.array([1, 2, 1], np.uint8), found)
    assert found.tolist() == [4, 12, 0]


def test_edges_between_neighbours_of_a_whole_graph() -> None:
    """A square with one diagonal, 0 to 2, and a tail."""
    offsets, lower = np.array([0, 0, 1, 3, 5, 6]), np.array([0, 0, 1, 0, 2, 3], np.int32)
    times = np.array([1, 2, 1, 1, 1, 2], np.uint8)
    assert programs.count_all_links(offsets, lower, times).tolist() == [2, 2, 2, 2, 0]
    assert programs.count_all_links(np.zeros(4, np.int64), lower[:0], times[:0]).tolist() == [0, 0, 0]


def test_other_arrays_are_refused() -> None:
    with pytest.raises(TypeError, match="NumPy's and CuPy's arrays"):
        programs.exact_sums([to_foreign(np.zeros(3))])  # type: ignore[list-item]
