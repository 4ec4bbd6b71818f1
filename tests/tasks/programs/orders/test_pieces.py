"""Functions of programs that are called for some vertices at a time, in several threads."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import ProgramError
from edgemill.tasks.programs import Program, Vertices
from edgemill.tasks.programs.orders import calls
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from vertex_programs import Drawn, by_blocks, graphs

SHIPPED: list[Program] = [
    BreadthFirst(0),
    Components(),
    Coreness(),
    LabelPropagation(4),
    PageRank(personal=(0,), weighted=True),
    ShortestPaths(0, delta=0.5),
]
PATH = Drawn(10, tuple((v, v + 1) for v in range(9)), (1.0,) * 9, True)


@given(graphs(), st.sampled_from(SHIPPED), st.integers(1, 5), st.integers(1, 2))
@settings(max_examples=60)
def test_pieces_do_not_change_results(graph: Drawn, program: Program, piece: int, blocks: int) -> None:
    whole = by_blocks(program, graph, blocks)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(calls, "PIECE", piece)
        patch.setattr(calls, "LANE", 1)
        cut = by_blocks(program, graph, blocks)
    assert (cut.steps, cut.moved) == (whole.steps, whole.moved)
    for name, values in whole.state.items():
        assert values.tobytes() == cut.state[name].tobytes()


@dataclass(frozen=True)
class Fickle(Program):
    """A wrong program: an error for the last vertex, or another type for the first vertices."""

    fails: bool

    state: ClassVar = {"got": "float64"}
    combine = "sum"
    steps = 2

    def start(self, v: Vertices) -> Any:
        return {"got": v.full(0.0)}, v.full(1.0)

    def emit(self, v: Vertices) -> Any:
        if self.fails and bool((v.number == 9).any()):
            raise ArithmeticError("no value for 9")
        return v.got if self.fails or int(v.number[0]) else v.full(0, "int64")

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        return {"got": got}, got


@pytest.mark.parametrize(
    ("fails", "message"),
    [(True, "ArithmeticError: no value for 9"), (False, "gives int64 for some vertices, and float64 for others")],
)
def test_errors_of_any_piece_are_raised(
    fails: bool, message: str, space: MemorySpace, monkeypatch: pytest.MonkeyPatch
) -> None:
    if space is MemorySpace.DEVICE and not fails:
        pytest.skip("a GPU computes all vertices in one piece")
    monkeypatch.setattr(calls, "PIECE", 3)
    monkeypatch.setattr(calls, "LANE", 1)
    with pytest.raises(ProgramError, match=message):
        by_blocks(Fickle(fails), PATH, 1)


def test_pieces_are_written_to_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every second row of an array, by three threads, and a new array in the order of the rows."""
    monkeypatch.setattr(calls, "LANE", 1)
    count, rows = 3 * calls.PIECE, np.arange(0, 3 * calls.PIECE, 2, dtype=np.int32)
    v = Vertices({"number": np.arange(count, dtype=np.int32)}, count, 0).at(rows)
    state = {"twice": np.zeros(count, np.int64)}
    with kernel_threads(3):
        found = calls.in_pieces(v, lambda part, _: {"twice": 2 * part.number, "": part.number + 1}, state, rows)
    assert np.array_equal(found[""], rows + 1)
    assert np.array_equal(state["twice"], np.where(np.arange(count) % 2, 0, 2 * np.arange(count)))
