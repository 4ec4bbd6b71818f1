"""Running programs: combinations, limits, and refusal of wrong programs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.errors import ClusterLost, ProgramError
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import (
    Best,
    Entries,
    Program,
    Totals,
    Vertices,
    build_block,
    cut_blocks,
    entries_of,
    run_blocks,
)
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.hits import Hits
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from edgemill.tasks.programs.shipped.sssp import ShortestPaths
from edgemill.tasks.programs.totals import add_parts, parts_of
from edgemill.tasks.shards import MemoryCarrier
from foreign import is_foreign, to_foreign
from vertex_programs import Drawn, by_blocks, graphs

TRIANGLE = Drawn(3, ((0, 1), (1, 2), (2, 0)), (2.0, 3.0, 5.0), True)


@dataclass(frozen=True)
class Widest(Program):
    """The largest product of weights on a path from vertex 0: `max` along `multiply`, for weights up to 1."""

    state: ClassVar = {"width": "float64"}
    combine = "max"
    along = "multiply"
    senders = "changed"

    def start(self, v: Vertices) -> Any:
        here = v.number == 0
        return {"width": np.where(here, 1.0, 0.0)}, here

    def emit(self, v: Vertices) -> Any:
        return v.width

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        return {"width": np.maximum(got, v.width)}, got > v.width


@dataclass(frozen=True)
class Neighbours(Program):
    """Four combinations of the values received in one superstep, by name."""

    combine_by: str = "any"
    state: ClassVar = {"got": "float64", "all": "float64"}

    @property
    def combine(self) -> Any:  # type: ignore[override]
        return self.combine_by

    @property
    def steps(self) -> int:
        return 1

    def start(self, v: Vertices) -> Any:
        return {"got": v.full(0.0), "all": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Any:
        return v.number % 2 == 0 if self.combine_by == "any" else v.number * 1.0

    def totals(self, v: Vertices) -> Any:
        return {"numbers": v.number}

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        return {"got": got.source if self.combine_by == "argmin" else got, "all": v.full(t.numbers)}, v.full(0.5)


@given(graphs(), st.sampled_from(["any", "min", "max", "sum", "argmin"]), st.sampled_from([1, 3]))
@settings(max_examples=40)
def test_received_values_are_combined(graph: Drawn, combine: str, blocks: int) -> None:
    sources: list[list[int]] = [[] for _ in range(graph.vertices)]
    for u, v in graph.edges:
        sources[v].append(u)
        if not graph.directed and u != v:
            sources[u].append(v)
    wanted = {
        "any": lambda row: float(any(u % 2 == 0 for u in row)),
        "min": lambda row: min(row, default=np.inf),
        "max": lambda row: max(row, default=-np.inf),
        "sum": sum,
        "argmin": lambda row: min(row, default=-1),
    }[combine]
    found = by_blocks(Neighbours(combine), graph, blocks)
    assert found.state["got"].tolist() == list(map(wanted, sources))
    assert set(found.state["all"].tolist()) == {graph.vertices * (graph.vertices - 1) / 2}
    assert found.moved == graph.vertices / 2


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_largest_product(blocks: int) -> None:
    graph = Drawn(4, ((0, 1), (1, 2), (0, 2), (3, 2)), (0.5, 0.5, 0.125, 1.0), True)
    assert by_blocks(Widest(), graph, blocks).state["width"].tolist() == [1.0, 0.5, 0.25, 0.0]


@pytest.mark.parametrize("blocks", [1, 2])
def test_limits_stop_all_blocks_after_the_same_superstep(blocks: int) -> None:
    path = Drawn(9, tuple((v, v + 1) for v in range(8)), (1.0,) * 8, True)
    found = by_blocks(BreadthFirst(0), path, blocks, by_range=True, most_steps=3)
    assert (found.steps, found.converged, found.state["level"].max()) == (3, False, 3)
    found = by_blocks(BreadthFirst(0), path, blocks, by_range=True, seconds=0)
    assert (found.steps, found.converged) == (0, False)
    assert by_blocks(BreadthFirst(0), path, blocks, by_range=True, most_steps=9).converged


@dataclass(frozen=True)
class Wrong(Components):
    """Returns arrays that do not match its declaration."""

    how: str = ""

    def start(self, v: Vertices) -> Any:
        state, moved = super().start(v)
        return ({"colour": v.number} if self.how == "name" else state), moved

    def emit(self, v: Vertices) -> Any:
        return super().emit(v).astype(np.int16) if self.how == "type" else super().emit(v)

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        state, moved = super().apply(v, got, t)
        return ({"component": 7} if self.how == "shape" else state), moved


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize(
    ("how", "message"),
    [
        ("name", "`start` in superstep 0: returns the arrays colour; `state` has component"),
        ("type", "`emit` in superstep 0: emits int16, not bool, int32, int64 or float64"),
        ("shape", "`apply` in superstep 0: gives int for 'component', not an array with one value for each of"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(how: str, message: str, blocks: int) -> None:
    """The error of the failing block is raised, not the loss of a block that another one reports."""
    with pytest.raises(ProgramError, match=message):
        by_blocks(Wrong(how=how), TRIANGLE, blocks)


@pytest.mark.parametrize(
    ("program", "attributes", "message"),
    [
        (Components, {"combine": "sum"}, "'sum' needs the values of all vertices"),
        (BreadthFirst, {"senders": "all"}, "needs senders 'changed'"),
        (LocalClustering, {"view": "both"}, "for view 'either'"),
        (Coreness, {"along": "add"}, "not for combine 'hindex'"),
        (PageRank, {"monotone": True}, "`monotone` is for senders 'changed'"),
        (PageRank, {"constant": ("ranks",)}, "`constant` has 'ranks', which is not in `state`"),
        (Components, {"window": lambda self, edges: 1.0}, "`window` is for `monotone` programs that define `priority`"),
        (PageRank, {"bound": "rank"}, "`bound` is 'rank', which must name an array of `state`, for senders 'changed'"),
        (ShortestPaths, {"bound": "length"}, "`bound` is 'length', which must name an array of `state`"),
        (Components, {"bound": "component"}, "`bound` is not for programs that spread"),
        (Components, {"alternates": True}, "`alternates` is for senders 'all' with view 'in', without `along`"),
        (PageRank, {"then": Hits()}, "`alternates` is for a program that does not come by `then`"),
        (Components, {"state": {"component": "int16"}}, "'component' of type 'int16', not one of bool"),
        (Components, {"combine": "least"}, "`combine` is 'least', not one of 'sum'"),
    ],
)
def test_attributes_that_cannot_be_combined_are_refused(program: Any, attributes: dict[str, str], message: str) -> None:
    sources = {"source"} & program.__dataclass_fields__.keys()
    with pytest.raises(ProgramError, match=message):
        by_blocks(type("Mixed", (program,), attributes)(**dict.fromkeys(sources, 0)), TRIANGLE, 1)


@pytest.mark.parametrize("program", [ShortestPaths(0), PageRank(weighted=True)])
def test_edges_without_weights_are_refused(program: Program) -> None:
    home = RangePartitioner()
    edges = Entries(np.array([0], np.int32), np.array([1], np.int32))
    blocks = cut_blocks(edges, 2, home, True, program.view)
    with pytest.raises(ProgramError, match="weights"):
        run_blocks(program, blocks, home, MemoryCarrier.open(1), threads=1)


def test_a_block_ends_when_another_is_lost() -> None:
    home = RangePartitioner(np.array([1]))
    blocks = cut_blocks(TRIANGLE.entries(), 3, home, True, "in")
    carriers = MemoryCarrier.open(2)
    carriers[1].close()
    with pytest.raises(ClusterLost):
        run_blocks(PageRank(), blocks[:1], home, carriers[:1], threads=1)


def test_an_unknown_attribute_lists_the_known_ones() -> None:
    vertices = Vertices({"number": np.arange(3)}, 3, 0)
    with pytest.raises(AttributeError, match="have number, no rank"):
        _ = vertices.rank


@given(graphs(), st.sampled_from(["in", "both", "either"]))
@settings(max_examples=40)
def test_rows_have_all_in_edges_sorted_by_source(graph: Drawn, view: Any) -> None:
    entries = entries_of(graph.entries(), graph.directed, view)
    number = np.arange(graph.vertices, dtype=np.int32)
    block = build_block(0, 1, graph.vertices, number, entries, graph.directed, view)
    found = sorted(
        (int(block.sources[block.rows.source[q]]), v)
        for v in range(graph.vertices)
        for q in range(block.rows.offsets[v], block.rows.offsets[v + 1])
    )
    edges = list(graph.edges)
    transposed = [(v, u) for u, v in edges if u != v or (graph.directed and view == "both")]
    both = [*edges, *transposed] if view != "in" or not graph.directed else edges
    assert found == sorted({(u, v) for u, v in both if u != v} if view == "either" else both)
    for v in range(graph.vertices):
        assert (np.diff(block.rows.source[block.rows.offsets[v] : block.rows.offsets[v + 1]]) >= 0).all()
    if view == "either" and graph.directed:
        assert block.times is not None
        assert block.times.tolist() == [
            both.count((int(block.sources[s]), v))
            for v in range(graph.vertices)
            for s in block.rows.source[block.rows.offsets[v] : block.rows.offsets[v + 1]]
        ]


@given(st.lists(st.floats(-1e300, 1e300), max_size=30), st.integers(1, 5))
@settings(max_examples=30)
def test_totals_are_exact_for_every_partitioning(values: list[float], parts: int) -> None:
    whole = add_parts(parts_of([np.array(values, np.float64)]))
    assert add_parts(parts_of(np.array_split(np.array(values, np.float64), parts))) == whole
    exact = sum((int(v.as_integer_ratio()[0]) << 1074) // v.as_integer_ratio()[1] for v in values)
    assert whole == exact / (1 << 1074)
    assert add_parts(parts_of([np.array([True, False, True]), np.array([2, 3])])) == 7
    assert np.isnan(add_parts(parts_of([np.array([1.0, np.nan])])))
    assert add_parts(parts_of([np.full(4, 1.7e308)])) == np.inf


@pytest.mark.parametrize(
    "program",
    [
        BreadthFirst(1),
        Components(),
        Coreness(),
        LabelPropagation(),
        LocalClustering(),
        PageRank(personal=(1, 2)),
        ShortestPaths(1),
    ],
    ids=lambda program: type(program).__name__,
)
def test_programs_run_on_other_array_types(program: Program) -> None:
    """Calls each function once, on arrays that cannot be mixed with NumPy's."""

    def run(put: Any) -> list[Any]:
        facts = {
            "number": np.arange(4, dtype=np.int32),
            "in_degree": np.array([0, 2, 1, 3]),
            "out_degree": np.array([1, 0, 2, 3]),
        }
        arrays = {name: put(values) for name, values in facts.items()}
        state, moved = program.start(Vertices(arrays, 4, 0))
        vertices = Vertices({**arrays, **state}, 4, 0)
        values = program.emit(vertices)
        totals = program.totals(vertices)
        kind = "int64" if program.combine in ("first", "mode", "hindex", "links") else "float64"
        came = put(np.array([3, 1, 2, 0], kind))
        got = Best(came, put(np.array([3, 1, 2, 0])), came) if program.combine == "argmin" else came
        new, moved_then = program.apply(vertices, got, Totals({"dangling": 0.25}))
        listening = program.receives(vertices)
        return [*state.values(), moved, values, *totals.values(), *new.values(), moved_then, listening]

    own, others = run(np.asarray), run(to_foreign)
    for one, other in zip(own, others, strict=True):
        if one is not None:
            assert is_foreign(other)
            assert one.tolist() == other.get().tolist()
