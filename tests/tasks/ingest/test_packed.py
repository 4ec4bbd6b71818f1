"""Packed rows in one bucket, against blocks that are cleaned one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.pipeline.events import Events
from edgemill.pipeline.stages import ingesting
from edgemill.pipeline.stages.ingesting import Buckets
from edgemill.pipeline.stages.limits import PACKED_ROW_BYTES, SORTED_SHARE
from edgemill.pipeline.stages.task_engine import SequentialEngine
from edgemill.tasks import ingest
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.ids import order
from edgemill.tasks.ingest.blocks import BlockEdges
from edgemill.tasks.ingest.packed import PACKED_BITS, PackedRows, WideRows, has_dense_ids
from edgemill.tasks.ingest.reading import IdRows
from edgemill.tasks.inputs.sources import Source

SOURCE = Source("rows", (), "src", "dst", pa.int64())
SPACES = [MemorySpace.HOST, pytest.param(MemorySpace.DEVICE, marks=pytest.mark.gpu)]
Rows = list[tuple[int, int]]

ids = st.integers(0, 12) | st.integers(0, 1_000)
blocks_of_rows = st.lists(st.lists(st.tuples(ids, ids), max_size=40), min_size=1, max_size=4)


def columns(rows: Rows) -> NDArray[np.int64]:
    return np.array(rows, np.int64).reshape(-1, 2).T


def id_rows(rows: Rows, space: MemorySpace) -> IdRows:
    return IdRows(*(space.place(np.ascontiguousarray(column)) for column in columns(rows)))


def packed_blocks(drawn: list[Rows], space: MemorySpace) -> list[PackedRows]:
    found = []
    for number, rows in enumerate(drawn):
        block = ingest.pack(number, id_rows(rows, space))
        assert isinstance(block, PackedRows)
        found.append(block)
    return found


def number(
    blocks: Sequence[PackedRows | WideRows | BlockEdges], space: MemorySpace, buckets: int = 1, device_bytes: int = 0
) -> tuple[Buckets, SequentialEngine]:
    engine = SequentialEngine()
    engine.capacity = replace(engine.capacity, device_bytes=device_bytes)
    return ingesting.number(engine, Events(), SOURCE, list(blocks), buckets, space), engine


def arrays(buckets: Buckets) -> list[dict[str, Any]]:
    place = MemorySpace.HOST.place
    found = []
    for own, edges in zip(buckets.ids, buckets.edges, strict=True):
        columns = {"ids": own.ids, "low": edges.low, "high": edges.high, "highs": edges.highs, "starts": buckets.starts}
        found.append({name: (place(values).dtype, place(values).tolist()) for name, values in columns.items()})
    return found


@pytest.mark.parametrize("space", SPACES)
@given(drawn=blocks_of_rows)
def test_equal_to_cleaned_blocks(space: MemorySpace, drawn: list[Rows]) -> None:
    packed = packed_blocks(drawn, space)
    cleaned = [ingest.clean(block, id_rows(rows, space), space) for block, rows in enumerate(drawn)]
    found, engine = number(packed, space)
    expected, _ = number(cleaned, space)
    assert engine.started["number-packed"] == 3 and not engine.started["send-ids"]
    assert arrays(found) == arrays(expected)
    for block, other in zip(packed, cleaned, strict=True):
        assert (block.rows, block.self_loops) == (other.rows, other.self_loops)
    assert found.duplicates == expected.duplicates + sum(block.duplicates for block in cleaned)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize(("sorted_rows", "buckets"), [(1, 3), (20, 2), (1000, 7)])
@given(drawn=blocks_of_rows)
def test_several_buckets(space: MemorySpace, sorted_rows: int, buckets: int, drawn: list[Rows]) -> None:
    """Blocks are sorted together as far as their rows fit; the edges are those of blocks that are cleaned."""
    packed = packed_blocks(drawn, space)
    cleaned = [ingest.clean(block, id_rows(rows, space), space) for block, rows in enumerate(drawn)]
    device_bytes = int(sorted_rows * PACKED_ROW_BYTES / SORTED_SHARE)
    found, engine = number(packed, space, buckets, device_bytes)
    expected, _ = number(cleaned, space, buckets)
    groups = engine.started["send-keys"]
    assert bool(groups) != bool(engine.started["unpack"])
    assert bool(groups) != bool(engine.started["send-ids"])
    if sorted_rows == 1000 and groups:
        assert groups == 1
    if sorted_rows == 1 and groups:
        assert groups >= sum(len(rows) > 0 for rows in drawn)
    vertices = np.unique(np.concatenate([columns(rows).ravel() for rows in drawn]))
    together = [number for own in arrays(found) for number in own["ids"][1]]
    assert together == vertices.tolist()
    assert len(found.edges) == len(found.ids) == buckets
    assert all_edges(found) == all_edges(expected)
    types = [{name: dtype for name, (dtype, _) in own.items()} for own in arrays(found)]
    assert types == [{name: dtype for name, (dtype, _) in own.items()} for own in arrays(expected)]
    assert found.duplicates == expected.duplicates + sum(block.duplicates for block in cleaned)


@pytest.mark.parametrize("space", SPACES)
def test_buckets_have_about_equally_many_edges(space: MemorySpace) -> None:
    """Smaller ends decide, not ids; and a range without smaller ends is cut as well."""
    rng = np.random.default_rng(3)
    low, high = rng.integers(0, 1_000, 200_000), rng.integers(1_000, 50_000, 200_000)
    halves = [
        IdRows(*(space.place(ends[own]) for ends in (low, high))) for own in (slice(100_000), slice(100_000, None))
    ]
    packed = [ingest.pack(block, rows) for block, rows in enumerate(halves)]
    found, _ = number(packed, space, 4)
    edges = [len(own) for own in found.edges]
    assert sum(edges) == len(np.unique(low * 50_000 + high))
    assert min(edges[:3]) > 0.2 * sum(edges)
    assert len(found.ids[3]) > 1_000


def all_edges(buckets: Buckets) -> list[tuple[int, int]]:
    """All edges as dense numbers, in the order of the buckets. Where a bucket ends depends on the blocks."""
    found: list[tuple[int, int]] = []
    for bucket, own in enumerate(arrays(buckets)):
        first = int(buckets.starts[bucket])
        high = [own["highs"][1][at] for at in own["high"][1]]
        found += zip([first + low for low in own["low"][1]], high, strict=True)
    return found


any_ids = st.integers(0, 3) | st.integers(-(2**63), 2**63 - 1)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("buckets", [1, 3])
@given(drawn=st.lists(st.lists(st.tuples(any_ids, any_ids), max_size=20), min_size=1, max_size=4))
def test_any_integers(space: MemorySpace, buckets: int, drawn: list[Rows]) -> None:
    """Rows of large ids are sorted in one bucket, and cleaned block by block in several."""
    blocks = [ingest.pack(block, id_rows(rows, space)) for block, rows in enumerate(drawn)]
    cleaned = [ingest.clean(block, id_rows(rows, space), space) for block, rows in enumerate(drawn)]
    found, engine = number(blocks, space, buckets)
    expected, _ = number(cleaned, space, buckets)
    ids = np.concatenate([columns(rows).ravel() for rows in drawn])
    is_dense = ids.min(initial=0) >= 0 and has_dense_ids(len(ids) // 2, int(ids.max(initial=0)))
    assert bool(engine.started["unpack"]) == (buckets > 1 and not is_dense)
    if buckets == 1:
        assert arrays(found) == arrays(expected)
        assert not engine.started["send-ids"]
    assert all_edges(found) == all_edges(expected)
    assert [(block.rows, block.self_loops) for block in blocks] == [(own.rows, own.self_loops) for own in cleaned]
    assert found.duplicates == expected.duplicates + sum(block.duplicates for block in cleaned)


@pytest.mark.parametrize("space", SPACES)
@pytest.mark.parametrize("id", [-1, 1 << PACKED_BITS, -(1 << 63), (1 << 63) - 1])
def test_ids_that_do_not_fit(space: MemorySpace, id: int) -> None:
    """A block with such an id is not packed. Beside a block that was cleaned all others are cleaned."""
    drawn: list[Rows] = [[(3, 1), (1, 3), (2, 2)], [(id, 1), (3, 1)]]
    first, second = (ingest.pack(block, id_rows(rows, space)) for block, rows in enumerate(drawn))
    assert (type(first), type(second)) == (PackedRows, WideRows)
    cleaned = [ingest.clean(block, id_rows(rows, space), space) for block, rows in enumerate(drawn)]
    for blocks, unpacked in (((first, second), 0), ((first, cleaned[1]), 2), ((cleaned[0], second), 2)):
        found, engine = number(blocks, space)
        assert engine.started["unpack"] == unpacked
        assert arrays(found) == arrays(number(cleaned, space)[0])


@pytest.mark.parametrize("space", SPACES)
def test_ids_far_apart_are_sorted(space: MemorySpace) -> None:
    """A table over their range would be far larger than the rows."""
    rows = [(0, (1 << PACKED_BITS) - 1), (5, 0)]
    found, engine = number([ingest.pack(0, id_rows(rows, space))], space)
    assert not engine.started["unpack"]
    assert arrays(found) == arrays(number([ingest.clean(0, id_rows(rows, space), space)], space)[0])


@pytest.mark.parametrize("space", SPACES)
def test_too_many_vertices_are_refused(space: MemorySpace, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(order, "MAX_CODES", 2)
    with pytest.raises(OutOfRoom, match="3 distinct"):
        number([ingest.pack(0, id_rows([(-1, 1), (1, 2)], space))], space)


def test_only_plain_rows_on_a_gpu_are_packed() -> None:
    assert ingesting.packs_rows(SOURCE, MemorySpace.DEVICE)
    assert not ingesting.packs_rows(SOURCE, MemorySpace.HOST)
    for other in (
        Source("rows", (), "src", "dst", pa.string()),
        Source("rows", (), "src", "dst", pa.int64(), directed=True),
        Source("rows", (), "src", "dst", pa.int64(), bipartite="refuse"),
    ):
        assert not ingesting.packs_rows(other, MemorySpace.DEVICE)
