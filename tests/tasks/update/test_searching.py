"""Edges are found among others with and without kernels, whichever are few."""

from __future__ import annotations

from bisect import bisect_left
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.graph import Topology
from edgemill.tasks.update import merging
from edgemill.tasks.update.merging import among, mark_ends, rows_before
from examples import examples

PAIRS = list(combinations(range(9), 2))
pairs = st.sets(st.sampled_from(PAIRS)).map(sorted)


def edges_of(rows: list[tuple[int, int]]) -> Topology:
    ends = np.array(rows, np.int32).reshape(-1, 2)
    return Topology(ends[:, 0].copy(), ends[:, 1].copy(), 9)


@pytest.mark.parametrize("few", [2**14, 0], ids=["without kernels", "by kernels"])
@settings(max_examples=examples(100))
@given(own=pairs, others=pairs, data=st.data())
def test_searches(few: int, own: list[tuple[int, int]], others: list[tuple[int, int]], data: st.DataObject) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(merging, "FEW", few)
        assert among(edges_of(own), edges_of(others)).tolist() == [edge in others for edge in own]
        some = data.draw(st.permutations(others))
        assert rows_before(edges_of(own), edges_of(some)).tolist() == [bisect_left(own, edge) for edge in some]
        marked = np.arange(9) == 3
        mark_ends(edges_of(own), np.array([edge in others for edge in own], np.bool_), marked)
        assert set(np.flatnonzero(marked).tolist()) == {3} | {end for edge in set(own) - set(others) for end in edge}
