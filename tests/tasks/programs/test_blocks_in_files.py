"""Blocks that are built piece by piece, with their entries in files, are those that are built in memory."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels import programs as gathers
from edgemill.kernels.chunked import is_mapped, rows_in_files
from edgemill.kernels.chunked.mapped import transpose_chunks
from edgemill.kernels.graph import InRows
from edgemill.kernels.runtime.sizes import NUMPY_ALLOCATOR
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, GraphBlock, ProgramOutcome, entries_of, run_program
from edgemill.tasks.programs.delivery import collect_block
from edgemill.tasks.programs.program import View
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.streaming import PIECE_BYTES, collect_block_in_pieces
from edgemill.tasks.shards import FileAllocator, MemoryCarrier
from vertex_programs import Drawn, arrays, cut, graphs

VIEWS: tuple[View, ...] = ("in", "both", "either")


@pytest.fixture(autouse=True)
def _once(space: MemorySpace) -> None:
    if space is MemorySpace.DEVICE:
        pytest.skip("of the CPU")


def parts_of(graph: Drawn, home: RangePartitioner, group: int, view: View, weighted: bool) -> dict[int, Entries]:
    """What two buckets send to a group."""
    edges = graph.entries()
    edges = Entries(edges.source, edges.target, edges.weight if weighted else None)
    entries = entries_of(edges, graph.directed, view)
    own = entries.at(home(entries.target) == group)
    half = len(own) // 2
    return {4: own.at(np.arange(half)), 9: own.at(np.arange(half, len(own)))}


@given(graphs(), st.integers(1, 4), st.sampled_from(VIEWS), st.booleans(), st.integers(1, 30))
@settings(max_examples=60)
def test_the_same_blocks(graph: Drawn, blocks: int, view: View, weighted: bool, most: int) -> None:
    home = cut(blocks, True, graph.vertices)
    assert isinstance(home, RangePartitioner)
    for group in range(blocks):
        parts = parts_of(graph, home, group, view, weighted)
        what = group, graph.vertices, home, graph.directed, view, weighted, parts
        found = collect_block_in_pieces(*what, allocator=NUMPY_ALLOCATOR, most_bytes=most * PIECE_BYTES)
        assert arrays(found) == arrays(collect_block(*what))


@given(st.lists(st.integers(0, 9), max_size=20), st.integers(1, 100), st.booleans(), st.integers(1, 300))
@settings(max_examples=40)
def test_the_same_transpose(lengths: list[int], chunk: int, weighted: bool, piece: int) -> None:
    random = np.random.default_rng(len(lengths))
    offsets = np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)
    source = np.concatenate([np.zeros(0, np.int64), *(np.sort(random.integers(0, 7, one)) for one in lengths)])
    rows = InRows(offsets, source.astype(np.int32), random.random(len(source)) if weighted else None)
    known = gathers.transpose_rows(rows, 7)
    found = transpose_chunks(rows_in_files(rows, chunk), 7, piece)
    for one, other in ((found.offsets, known.offsets), (found.source, known.source), (found.weight, known.weight)):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            assert (one.dtype, one.tolist()) == (other.dtype, other.tolist())


def ran(program: Any, block: GraphBlock, home: RangePartitioner, **how: Any) -> ProgramOutcome:
    return run_program(program, block, home, MemoryCarrier.open(1)[0], **how)


@pytest.mark.parametrize("directed", [False, True])
@pytest.mark.parametrize(
    "program", [PageRank(), BreadthFirst(0), Coreness(), ShortestPaths(0)], ids=lambda p: type(p).__name__
)
def test_programs_over_files(program: Any, directed: bool, tmp_path: Path) -> None:
    random = np.random.default_rng(3)
    pairs = sorted({(int(u), int(v)) for u, v in random.integers(0, 200, (2000, 2)) if u < v})
    graph = Drawn(200, tuple(pairs), tuple(random.random(len(pairs)).tolist()), directed)
    home = RangePartitioner()
    parts = parts_of(graph, home, 0, program.view, True)
    what = 0, graph.vertices, home, directed, program.view, True, parts
    known = ran(program, collect_block(*what), home)
    with FileAllocator(tmp_path, 2**20) as allocator:
        block = collect_block_in_pieces(*what, allocator=allocator, most_bytes=100 * PIECE_BYTES)
        assert is_mapped(block.rows)
        made = allocator.allocated_bytes
        found = ran(program, block, home, allocator=allocator)
        transposes = directed and program.view == "in" and program.senders == "changed"
        assert (allocator.allocated_bytes - made == 12 * len(block)) is transposes
    for name, values in known.state.items():
        assert values.tobytes() == found.state[name].tobytes()
