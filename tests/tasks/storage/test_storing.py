"""Stored values are restored unchanged, on the host and the GPU; changed files are refused."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import drive
import foreign
import strategies
from edgemill import kernels
from edgemill.kernels.cpu.shards import Cut
from edgemill.tasks.bands.filtering import Bands, FilterFigures
from edgemill.tasks.bands.peeling import BandState
from edgemill.tasks.bands.remainder import HandedOver
from edgemill.tasks.bound.bisection import Halves
from edgemill.tasks.bound.fixpoint import Bounds
from edgemill.tasks.bound.iterations import record
from edgemill.tasks.bound.peel import Peeled
from edgemill.tasks.checkpoint_values import TYPES, restore, store
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.graph import Subgraph, WholeGraph
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.shards import Figures, ShardEdges, ShardOnGpu, ShardState
from edgemill.tasks.shards.supports import BucketSupports
from edgemill.tasks.storage.array_files import DamagedFile, StoredFile
from examples import examples

OF_PROGRAMS = {"HierarchyRows", "NamedColumns", "Outcome", "PairTable", "Pending"}
"""Stored in tests/tasks/programs/test_paused.py and tests/pipeline/programs/test_core_groups.py."""


def same(one: Any, other: Any) -> bool:
    """Whether two values are equal, of the same types, and in the same memory space."""
    if type(one) is not type(other):
        return False
    if is_dataclass(one):
        return all(same(getattr(one, field.name), getattr(other, field.name)) for field in fields(one))
    if isinstance(one, Mapping):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, pa.Array) or not hasattr(one, "dtype"):
        return bool(one == other)
    here, there = kernels.to_host(one), kernels.to_host(other)
    return here.dtype == there.dtype and here.shape == there.shape and bool((here == there).all())


def values(folder: Path, strings: bool, space: MemorySpace, rows: strategies.EdgeList) -> list[Any]:
    """Values of all types that a run stores in checkpoints."""
    ids = np.array(rows, np.int64).reshape(-1, 2)
    columns = [pa.array(map(str, ids[:, end])) if strings else pa.array(ids[:, end]) for end in (0, 1)]
    columns = [column.cast(pa.string() if strings else pa.int64()) for column in columns]
    pq.write_table(pa.table(columns, names=["src", "dst"]), folder / "a.parquet")
    ingested = drive.ingest(open_source(str(folder)), buckets=2, space=space)
    subgraph = drive.subgraph(ingested.owned)
    counts = subgraph.first_counts()
    bands = Bands(counts, subgraph.number, (2, 5), (7, 3), (True, False), 9, True, FilterFigures(3, 2))
    state = BandState(bands, bands.start, (0,), 4)
    handed = HandedOver(0, 2, 3, 4, state.low, state.low[:1], Figures(levels=2), state)
    studied = [Bounds(record([]), counts, counts), Halves(record([]), counts, counts, subgraph.number)]
    graph = [*ingested.ids, *ingested.edges, *ingested.degrees, ingested.owned, *ingested.groups, subgraph]
    return [*graph, *studied, Peeled(counts, counts, 2, 1, 5), state, bands, bands.figures, handed, *shards(ids)]


def shards(ids: NDArray[np.int64]) -> list[Any]:
    """Values that a run with shards stores. Their numbers need not be consistent."""
    low, high = (ids[:, end].astype(np.uint32) for end in (0, 1))
    count = ids[:, 0].astype(np.int32)
    cut, figures = Cut(7, 3), Figures(exchanges=4, entries=(5, 6, 0), triangles=(), bytes=8)
    edges = ShardEdges(1, 2, cut, low, high, count, len(ids))
    state = ShardState(1, 2, 3, 4, 5, count, count.astype(np.uint8), count, count, 6, -7, figures)
    on_gpu = ShardOnGpu(1, 2, 3, 4, 5, count, count, count, 6, 7, 8, 9, 10, 11, np.arange(15, dtype=np.uint64))
    return [cut, figures, edges, state, on_gpu, BucketSupports(1, count)]


@given(
    rows=strategies.edge_lists(12),
    strings=st.booleans(),
    elsewhere=st.booleans(),
)
@settings(max_examples=examples(50))
def test_restored_values_are_equal(
    tmp_path_factory: pytest.TempPathFactory,
    rows: strategies.EdgeList,
    strings: bool,
    elsewhere: bool,
) -> None:
    folder = tmp_path_factory.mktemp("stored")
    with foreign.with_kernels():
        space = MemorySpace.DEVICE if elsewhere and not strings else MemorySpace.HOST
        kept = values(folder, strings, space, rows)
        owned = next(value for value in kept if isinstance(value, OwnedEdges))
        subgraph = next(value for value in kept if isinstance(value, Subgraph))
        kept.append(WholeGraph(owned.offsets, owned.high, subgraph.support, subgraph.counts))
        assert {type(value).__name__ for value in kept} == TYPES.keys() - {"PartitionCounts", "Topology"} - OF_PROGRAMS
        for i, value in enumerate(kept):
            file = store(value, str(folder / f"{i}.zip"), {})
            assert file.bytes == (folder / f"{i}.zip").stat().st_size
            assert same(restore(file, {}), value)


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> StoredFile:
    folder = tmp_path_factory.mktemp("stored")
    found = values(folder, False, MemorySpace.HOST, [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)])
    subgraph = next(value for value in reversed(found) if isinstance(value, Subgraph))
    return store(subgraph, str(folder / "subgraph.zip"), {})


def test_the_same_bytes_at_another_time(stored: StoredFile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("time.localtime", lambda *_: time.struct_time((2031, 2, 3, 4, 5, 6, 0, 34, 0)))
    again = store(restore(stored, {}), str(tmp_path / "again.zip"), {})
    assert again.sha256 == stored.sha256


@given(place=st.floats(0, 1, exclude_max=True), change=st.sampled_from(["flip", "cut", "zero", "longer"]))
@settings(max_examples=examples(100))
def test_changed_files_are_refused(stored: StoredFile, place: float, change: str) -> None:
    content = bytearray(Path(stored.url).read_bytes())
    at = int(place * len(content))
    if change == "flip":
        content[at] ^= 1 << at % 8
    elif change == "cut":
        del content[at:]
    elif change == "zero":
        content[at : at + 64] = bytes(len(content[at : at + 64]))
    else:
        content.append(0)
    if bytes(content) == Path(stored.url).read_bytes():
        return  # there were zeros
    changed = Path(stored.url).with_name("changed.zip")
    changed.write_bytes(content)
    with pytest.raises(DamagedFile, match="cut off"):
        restore(replace(stored, url=str(changed)), {})


def test_a_missing_file_is_refused(stored: StoredFile) -> None:
    with pytest.raises(DamagedFile, match=r"absent\.zip.*such"):
        restore(replace(stored, url=str(Path(stored.url).with_name("absent.zip"))), {})
