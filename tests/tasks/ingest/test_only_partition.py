"""The only partition of a graph, sorted range by range as on GPUs, against a sort of all edges."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.tasks import ingest
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.ingest import EdgeParts, OwnedEdges
from edgemill.tasks.ingest.ownership import collect_in_ranges

SPACES = [MemorySpace.HOST, pytest.param(MemorySpace.DEVICE, marks=pytest.mark.gpu)]


@st.composite
def edges_in_buckets(draw: st.DrawFn) -> dict[int, EdgeParts]:
    """Distinct edges whose ends have ranks without gaps, the lowest of them of any value, in some of five buckets."""
    vertices, first = draw(st.integers(2, 30)), draw(st.sampled_from([0, 7]))
    path = {(v, v + 1) for v in range(vertices - 1)}
    ends = st.tuples(st.integers(0, vertices - 1), st.integers(0, vertices - 1))
    more = draw(st.sets(ends.map(lambda pair: (min(pair), max(pair))), max_size=80))
    pairs = draw(st.permutations(sorted(path | {pair for pair in more if pair[0] < pair[1]})))
    homes = draw(st.lists(st.integers(0, 4), min_size=len(pairs), max_size=len(pairs)))
    parts = {}
    for bucket in set(homes):
        low, high = np.array([pair for pair, home in zip(pairs, homes, strict=True) if home == bucket], np.int32).T
        parts[bucket] = EdgeParts(low + np.int32(first), high + np.int32(first))
    return parts


def values(owned: OwnedEdges) -> dict[str, object]:
    host = move_arrays(owned, MemorySpace.HOST)
    names = ("rank", "offsets", "high", "bucket", "row")
    return {name: (getattr(host, name).dtype, getattr(host, name).tolist()) for name in names}


@pytest.mark.parametrize("space", SPACES)
@given(parts=edges_in_buckets(), at_once=st.integers(1, 100))
def test_ranges_of_low_ends(space: MemorySpace, parts: dict[int, EdgeParts], at_once: int) -> None:
    placed = {bucket: move_arrays(part, space) for bucket, part in parts.items()}
    expected = ingest.collect_owned(MemorySpace.HOST, parts)
    for rows_on_host in (False, True):
        found = collect_in_ranges(placed, rows_on_host, at_once)
        assert values(found) == values(expected)
        assert all(isinstance(array, np.ndarray) for array in (found.row, found.bucket)) or not rows_on_host
    assert values(ingest.collect_owned(space, placed)) == values(expected)


@pytest.mark.parametrize("space", SPACES)
def test_more_edges_than_int32_numbers(space: MemorySpace, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only where each edge would get a number of 32 bits is there a limit: on a GPU the only partition has none."""
    monkeypatch.setattr("edgemill.tasks.ingest.ownership.MAX_LOCAL_EDGES", 2)
    low = np.arange(3, dtype=np.int32)
    parts = {0: move_arrays(EdgeParts(low, low + np.int32(1)), space)}
    if space is MemorySpace.DEVICE:
        assert len(ingest.collect_owned(space, parts)) == 3
        return
    with pytest.raises(OutOfRoom, match=r"3.*2.*hold"):
        ingest.collect_owned(space, parts)
    assert len(collect_in_ranges(parts)) == 3
