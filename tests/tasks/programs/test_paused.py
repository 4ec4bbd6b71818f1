"""Programs that limits stop and that go on from there, also from files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks import checkpoint_values
from edgemill.tasks.ids import identity
from edgemill.tasks.partition import HashPartitioner
from edgemill.tasks.programs import Program, ProgramOutcome, cut_blocks, run_blocks
from edgemill.tasks.programs.delivery import NamedColumns
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.hits import Hits
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.shipped.strong_components import StrongComponents
from edgemill.tasks.shards import MemoryCarrier
from examples import examples
from vertex_programs import Drawn, graphs

SHIPPED: list[Program] = [
    BreadthFirst(0),
    Components(),
    Coreness(),
    Hits(),
    LabelPropagation(4),
    PageRank(),
    PageRank(iterations=5, weighted=True, personal=(0,)),
    ShortestPaths(0),
    StrongComponents(),
]


MANY = 10_000
"""A limit that no run reaches; with a limit, one block takes supersteps, too."""


@given(graphs(), st.sampled_from(SHIPPED), st.integers(1, 4), st.integers(1, 3))
@settings(max_examples=examples(60))
def test_it_goes_on_to_the_same_bits(graph: Drawn, program: Program, blocks: int, stride: int) -> None:
    home = HashPartitioner(blocks)
    cut = cut_blocks(graph.entries(), graph.vertices, home, graph.directed, program.view)

    def run(most: int | None, before: list[ProgramOutcome] | None) -> list[ProgramOutcome]:
        return run_blocks(
            program, cut, home, MemoryCarrier.open(blocks), threads=blocks, most_steps=most, before=before
        )

    whole, parts = run(MANY, None), run(0, None)
    while not parts[0].converged:
        parts = run(parts[0].steps + stride, parts)
    for one, other in zip(whole, parts, strict=True):
        assert (one.steps, one.converged, one.pending) == (other.steps, True, None)
        assert np.array_equal(one.moved, other.moved, equal_nan=True)
        assert all(one.state[name].tobytes() == other.state[name].tobytes() for name in program.state)
        assert one.bytes <= other.bytes
    for found in (whole, parts):
        assert sum(own.bytes for own in found) == sum(own.received for own in found)


def test_its_state_is_stored(tmp_path: Path) -> None:
    graph = Drawn(9, tuple((v, v + 1) for v in range(8)), (1.0,) * 8, True)
    home = HashPartitioner(2)
    cut = cut_blocks(graph.entries(), 9, home, True, "in")
    paused = run_blocks(BreadthFirst(0), cut, home, MemoryCarrier.open(2), threads=2, most_steps=3)
    stored = [checkpoint_values.store(own, f"file://{tmp_path}/{own.group}.zip", {}) for own in paused]
    again = [checkpoint_values.restore(file, {}) for file in stored]
    ended = run_blocks(BreadthFirst(0), cut, home, MemoryCarrier.open(2), threads=2, before=again)
    levels = {int(v): int(level) for own in ended for v, level in zip(own.number, own.state["level"], strict=True)}
    assert levels == {v: v for v in range(9)}
    assert all(own.converged and own.steps == 9 for own in ended)


def test_columns_are_stored(tmp_path: Path) -> None:
    ids = identity.no_ids("string")
    columns = NamedColumns(3, {"rank": np.array([0.5, np.inf, np.nan]), "label": np.array([2, 0, 1])}, ids)
    found = checkpoint_values.restore(checkpoint_values.store(columns, f"file://{tmp_path}/0.zip", {}), {})
    assert (found.bucket, list(found.columns), found.ids) == (3, ["rank", "label"], ids)
    assert found.columns["rank"].tobytes() == columns.columns["rank"].tobytes()
