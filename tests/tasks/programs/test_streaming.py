"""Programs give the same bits if the entries of their blocks are streamed, by every way to bring chunks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chunked_rows import WAYS, OnDevice, Way, mapped
from edgemill.kernels.chunked import ChunkedRows, is_mapped, streaming
from edgemill.kernels.graph import InRows
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import GraphBlock, Program, cut_blocks
from edgemill.tasks.programs import streaming as streamed_blocks
from edgemill.tasks.programs.running import find_at_once
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.streaming import place_block
from edgemill.tasks.shards import MemoryCarrier
from vertex_programs import Drawn, by_blocks

PROGRAMS: list[Program] = [
    BreadthFirst(3),
    Components(),
    Coreness(),
    LabelPropagation(4),
    LocalClustering(),
    PageRank(iterations=4),
    PageRank(iterations=4, weighted=True),
    ShortestPaths(3),
]
CHUNK = 600


def drawn(directed: bool) -> Drawn:
    """A hub, a path that a search follows for many supersteps, and random edges."""
    random = np.random.default_rng(5)
    edges = {(0, v) for v in range(1, 150)} | {(v, v + 1) for v in range(150, 260)}
    edges |= {(int(u), int(v)) for u, v in random.integers(0, 160, (900, 2)) if u < v}
    listed = tuple(sorted((v, u) if directed and (u + v) % 3 == 0 else (u, v) for u, v in edges))
    return Drawn(300, listed, tuple(random.random(len(listed)).tolist()), directed)


GRAPHS = {directed: drawn(directed) for directed in (False, True)}


@pytest.fixture(autouse=True)
def _small_chunks(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(streaming, "LEAST_CHUNK_BYTES", CHUNK)
    yield


def cases() -> Iterator[object]:
    """Each program and direction has one of the ways of the host as its quick one, in turn."""
    for turn, (directed, program) in enumerate(product([False, True], PROGRAMS)):
        named = f"{'directed' if directed else 'undirected'}-{type(program).__name__}{program.along}"
        for at, way in enumerate(WAYS):
            on_device = isinstance(way.values[0], OnDevice)
            slow = [] if on_device or at == (turn + directed) % (len(WAYS) - 1) else [pytest.mark.slow]
            yield pytest.param(way.values[0], program, directed, id=f"{named}-{way.id}", marks=[*way.marks, *slow])


@pytest.mark.parametrize(("way", "program", "directed"), list(cases()))
def test_the_same_bits(way: Way, program: Program, directed: bool, space: MemorySpace, tmp_path: Path) -> None:
    on_device = isinstance(way, OnDevice)
    if on_device != (space is MemorySpace.DEVICE):
        pytest.skip("this way is for another processor")
    visited = []

    def change(block: GraphBlock) -> GraphBlock:
        if on_device:
            return block
        folder = tmp_path / str(block.group)
        folder.mkdir(exist_ok=True)
        rows = way.put(block.rows, CHUNK, 4 * CHUNK, folder)
        visited.append(rows)
        return replace(block, rows=rows)

    limits: dict[str, Any] = {"topology_bytes": 8 * CHUNK} if on_device else {}
    for blocks in (1, 3):
        known = by_blocks(program, GRAPHS[directed], blocks, most_steps=1000)  # superstep by superstep
        found = by_blocks(program, GRAPHS[directed], blocks, change=change, most_steps=1000, **limits)
        assert {**vars(known), "state": None} == {**vars(found), "state": None}
        for name, values in known.state.items():
            assert values.tobytes() == found.state[name].tobytes()
    if program.combine in ("sum", "mode", "hindex") and not on_device:
        assert all(rows.feed.bytes_copied > 0 for rows in visited)


def block_of(program: Program, directed: bool = False) -> GraphBlock:
    graph = GRAPHS[directed]
    return cut_blocks(graph.entries(), graph.vertices, RangePartitioner(), directed, program.view)[0]


def test_mapped_entries_are_read_in_chunks(tmp_path: Path) -> None:
    block = block_of(PageRank())
    rows = InRows(block.rows.offsets, mapped(block.rows.source, tmp_path / "source"))
    assert is_mapped(rows) and not is_mapped(block.rows)
    placed = place_block(PageRank(), replace(block, rows=rows), MemorySpace.HOST)
    assert isinstance(placed.rows, ChunkedRows)
    assert placed.rows.source is rows.source
    assert place_block(PageRank(), block, MemorySpace.HOST) is block


def test_memory_of_entries() -> None:
    """Rows that are their own transpose need no scratch memory; others do for programs with frontiers."""
    undirected, directed = block_of(BreadthFirst(0)), block_of(BreadthFirst(0), True)
    entries = len(directed)
    assert streamed_blocks.topology_bytes(BreadthFirst(0), undirected) == 12 * len(undirected)
    assert streamed_blocks.topology_bytes(PageRank(), directed) == 12 * entries
    assert (
        streamed_blocks.topology_bytes(BreadthFirst(0), directed) == (24 + streamed_blocks.TRANSPOSING_BYTES) * entries
    )
    plain = replace(directed, rows=InRows(directed.rows.offsets, directed.rows.source))
    assert streamed_blocks.topology_bytes(PageRank(), plain) == 4 * entries
    assert streamed_blocks.topology_bytes(LocalClustering(), plain) == (4 + streamed_blocks.LINKS_BYTES) * entries


@pytest.mark.gpu
def test_where_a_gpu_has_entries(space: MemorySpace) -> None:
    if space is MemorySpace.HOST:
        pytest.skip("of GPUs")
    block = block_of(PageRank())
    whole = place_block(PageRank(), block, space)
    assert not isinstance(whole.rows, ChunkedRows)
    assert whole.on_device
    streamed = place_block(PageRank(), block, space, 16 * CHUNK)
    assert isinstance(streamed.rows, ChunkedRows)
    assert streamed.on_device
    assert 0 < streamed.rows.feed.kept < len(streamed.rows.feed.chunks)  # type: ignore[attr-defined]
    again = place_block(PageRank(), block, space, 0)
    assert isinstance(again.rows, ChunkedRows)
    assert again.rows.home.source is streamed.rows.home.source  # pinned once
    assert not place_block(LocalClustering(), block, space, 0).on_device


@pytest.mark.gpu
def test_a_search_reads_rows_in_place(space: MemorySpace) -> None:
    if space is MemorySpace.HOST:
        pytest.skip("of GPUs")
    program, home, carrier = BreadthFirst(3), RangePartitioner(), MemoryCarrier.open(1)[0]
    for directed in (False, True):
        block = place_block(program, block_of(program, directed), space, 0)
        found = find_at_once(program, block, home, carrier, None)
        rows = block.rows
        assert isinstance(rows, ChunkedRows) and (found is None) == directed
        assert find_at_once(PageRank(), block, home, carrier, None) is None
        if found is not None:
            assert rows.feed.bytes_copied == 0 < rows.feed.bytes_direct
            known = by_blocks(program, GRAPHS[directed], 1, most_steps=1000)
            assert found.steps == known.steps
            for name, values in known.state.items():
                assert MemorySpace.HOST.place(found.state[name]).tolist() == values.tolist()
