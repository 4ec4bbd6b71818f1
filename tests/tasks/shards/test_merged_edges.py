"""Edges of a group that buckets sent, merged range by range."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill import kernels
from edgemill.kernels.gpu.shards.triangles import low_ranges
from edgemill.tasks.device import MemorySpace, move_arrays
from edgemill.tasks.shards import group_edges
from edgemill.tasks.shards.group_edges import SupportedEdges

SPACES = [MemorySpace.HOST, pytest.param(MemorySpace.DEVICE, marks=pytest.mark.gpu)]
GROUPS = 3

edges = st.sets(st.tuples(st.integers(0, 30), st.integers(0, 2**32 - 3)), max_size=60)


def is_own(ends: NDArray[np.uint32]) -> NDArray[np.bool_]:
    found: NDArray[np.bool_] = ends % np.uint32(GROUPS) == 1
    return found


@pytest.mark.parametrize("space", SPACES)
@settings(deadline=None)
@given(drawn=edges, senders=st.integers(1, 4), at_once=st.integers(1, 70), seed=st.integers(0, 9))
def test_merged_as_sorted_together(
    space: MemorySpace, drawn: set[tuple[int, int]], senders: int, at_once: int, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    ends = np.array(sorted(drawn), np.int64).reshape(-1, 2).astype(np.uint32)
    support, row = rng.integers(1, 99, len(ends)).astype(np.int32), np.arange(len(ends), dtype=np.int32)
    sender = rng.integers(0, senders, len(ends))
    parts = []
    for s in range(senders):
        low, high = (np.ascontiguousarray(end[sender == s]) for end in ends.T)
        parts.append(SupportedEdges(low, high, support[sender == s], row[sender == s][is_own(high)]))
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(group_edges, "AT_ONCE", at_once)
        found = group_edges.merge_edges(
            [move_arrays(part, space) for part in parts], [7 * s for s in range(senders)], is_own
        )
    owned = is_own(ends[:, 1])
    expected: tuple[NDArray[np.generic], ...] = (
        ends[:, 0],
        ends[:, 1],
        support,
        7 * sender[owned].astype(np.int16),
        row[owned],
    )
    for array, values in zip(found, expected, strict=False):
        assert isinstance(array, int) or kernels.to_host(array).tolist() == values.tolist()
    assert found.entries == is_own(ends).sum()


@pytest.mark.parametrize("most", [1, 10, 1000, 10**6])
def test_ranges_cover_each_edge_once(most: int) -> None:
    rng = np.random.default_rng(1)
    lows = [np.sort(rng.zipf(1.3, count) % 5000).astype(np.uint32) for count in (4000, 0, 9000, 3)]
    ranges = low_ranges(lows, most)
    for run, low in enumerate(lows):
        cuts = [own[run] for own in ranges]
        assert [cuts[0].start, cuts[-1].stop] == [0, len(low)]
        assert all(before.stop == after.start for before, after in pairwise(cuts))
    lasts, firsts = [], []
    for own in ranges:
        inside = np.concatenate([low[cut] for low, cut in zip(lows, own, strict=True)])
        if len(inside):
            firsts.append(int(inside.min()))
            lasts.append(int(inside.max()))
    assert all(last < first for last, first in zip(lasts, firsts[1:], strict=False))
    longest = max(int(np.bincount(np.concatenate(lows)).max()), most)
    assert max(sum(cut.stop - cut.start for cut in own) for own in ranges) <= 2 * longest


def test_no_edges_have_no_ranges() -> None:
    assert low_ranges([np.zeros(0, np.uint32)] * 2, 5) == []
