"""From buckets to blocks and back: each entry arrives once, for arrays in any memory, and missing rows are detected."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from edgemill.tasks.errors import InternalError
from edgemill.tasks.ingest.directions import DOWN, UP
from edgemill.tasks.ingest.numbering import BucketEdges, BucketIds
from edgemill.tasks.messages import collect
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import delivery
from edgemill.tasks.programs.running import ProgramOutcome
from foreign import to_foreign, with_kernels

STARTS = np.array([0, 3, 5])
PAIRS = [(0, 1, UP), (0, 4, DOWN), (1, 3, UP | DOWN), (2, 3, UP), (3, 4, DOWN)]
"""Smaller end, larger end, direction bits. The first four edges belong to bucket 0."""


def bucket(number: int, directed: bool, put: Any = np.asarray) -> BucketEdges:
    own = [pair for pair in PAIRS if STARTS[number] <= pair[0] < STARTS[number + 1]]
    low, high, ways = (np.array([pair[at] for pair in own], np.int32) for at in range(3))
    highs, code = np.unique(high, return_inverse=True)
    ends = put(low - np.int32(STARTS[number])), put(code.astype(np.int32)), put(highs)
    return BucketEdges(number, STARTS, *ends, 0, put(ways.astype(np.uint8)) if directed else None)


def expected(directed: bool, view: str) -> list[tuple[int, int]]:
    arcs = [(u, v) for u, v, way in PAIRS if way & UP or not directed]
    arcs += [(v, u) for u, v, way in PAIRS if way & DOWN or not directed]
    if not directed or view == "in":
        return sorted(arcs)
    both = arcs + [(v, u) for u, v in arcs]
    return sorted(set(both)) if view == "either" else sorted(both)


@pytest.mark.parametrize("put", [np.asarray, to_foreign], ids=["host", "elsewhere"])
@pytest.mark.parametrize("cuts", [[], [2], [0, 1, 4]])
@pytest.mark.parametrize("view", ["in", "both", "either"])
@pytest.mark.parametrize("directed", [False, True])
def test_entries_arrive_at_the_blocks_of_their_targets(directed: bool, view: Any, cuts: list[int], put: Any) -> None:
    home = RangePartitioner(np.array(cuts, np.int64))
    with with_kernels():
        sent = [delivery.send_entries(bucket(number, directed, put), home, view) for number in (0, 1)]
    found = []
    for group in range(home.partitions):
        block = delivery.collect_block(group, 5, home, directed, view, False, collect(group, sent))
        assert (home(block.number) == group).all()
        for row, number in enumerate(block.number.tolist()):
            sources = block.rows.source[block.rows.offsets[row] : block.rows.offsets[row + 1]]
            found += [(source, number) for source in block.sources[sources].tolist()]
    assert sorted(found) == expected(directed, view)


def outcome(group: int, number: list[int], values: list[int]) -> ProgramOutcome:
    return ProgramOutcome(group, np.array(number, np.int32), {"label": np.array(values)}, 1, True, 0, 0, 0)


def test_columns_of_vertex_numbers_get_ids() -> None:
    outcomes = [outcome(0, [0, 1], [4, 0]), outcome(1, [2, 3, 4], [0, 4, 2])]
    sent = [delivery.send_state(own, STARTS) for own in outcomes]
    found = [delivery.collect_state(b, STARTS, {"label": "int64"}, collect(b, sent)) for b in (0, 1)]
    ids = [BucketIds(0, np.array([10, 20, 30]), {}), BucketIds(1, np.array([40, 50]), {})]
    asked = [delivery.ask_ids(own, ["label"], STARTS) for own in found]
    answers = [delivery.answer_ids(ids[b], STARTS, collect(b, asked)) for b in (0, 1)]
    named = [delivery.name_columns(found[b], ["label"], "integer", collect(b, answers)) for b in (0, 1)]
    assert [own.ids[own.columns["label"]].tolist() for own in named] == [[50, 10, 10], [50, 30]]
    with pytest.raises(InternalError, match=r"0 asked.*2.*1"):
        delivery.name_columns(found[0], ["label"], "integer", collect(0, answers[:1]))


def test_a_vertex_without_a_result_is_an_error() -> None:
    sent = [delivery.send_state(outcome(0, [0, 1], [4, 0]), STARTS)]
    with pytest.raises(InternalError, match=r"0.*3.*found 2"):
        delivery.collect_state(0, STARTS, {"label": "int64"}, collect(0, sent))
