"""Graphs for vertex programs, and runs on any number of blocks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import networkx as nx
import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from numpy.typing import NDArray

from edgemill.tasks.device import MemorySpace
from edgemill.tasks.partition import HashPartitioner, Partitioner, RangePartitioner
from edgemill.tasks.programs import AnyProgram, Entries, GraphBlock, cut_blocks, run_blocks
from edgemill.tasks.programs.orders.calls import KINDS
from edgemill.tasks.shards import MemoryCarrier


class Where:
    """The memory in which `by_blocks` runs programs; tests/tasks/programs/conftest.py sets it."""

    space = MemorySpace.HOST


@dataclass(frozen=True)
class Drawn:
    """A graph of the vertices 0 … vertices - 1 without repeated edges (in either direction if undirected)."""

    vertices: int
    edges: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]
    directed: bool

    def networkx(self) -> Any:
        """The graph as DiGraph or Graph."""
        graph = nx.DiGraph() if self.directed else nx.Graph()
        graph.add_nodes_from(range(self.vertices))
        graph.add_weighted_edges_from((u, v, w) for (u, v), w in zip(self.edges, self.weights, strict=True))
        return graph

    def entries(self) -> Entries:
        """The input of `cut_blocks`."""
        ends = np.array(self.edges, np.int32).reshape(-1, 2)
        return Entries(ends[:, 0].copy(), ends[:, 1].copy(), np.array(self.weights, np.float64))


@st.composite
def graphs(draw: st.DrawFn, most: int = 14) -> Drawn:
    """Directed and undirected graphs, with loops, weights that are often equal or 0, isolated vertices; also empty
    ones.
    """
    vertices, directed = draw(st.integers(1, most)), draw(st.booleans())
    ends = st.tuples(st.integers(0, vertices - 1), st.integers(0, vertices - 1))
    edges = draw(st.lists(ends, unique_by=(lambda e: e) if directed else lambda e: (min(e), max(e)), max_size=4 * most))
    weight = st.sampled_from([0.0, 0.25, 1.0, 2.0, 0.1, 1e6])
    weights = draw(st.lists(weight, min_size=len(edges), max_size=len(edges)))
    return Drawn(vertices, tuple(edges), tuple(weights), directed)


@dataclass(frozen=True)
class Found:
    """The results of a program over all blocks."""

    state: dict[str, NDArray[Any]]
    """[vertices]"""
    steps: int
    converged: bool
    moved: float
    entries: int
    """Entries read."""
    facts: dict[str, Any]
    """Facts of the whole graph, without times."""
    exchanges: int
    order: str


def cut(blocks: int, by_range: bool, vertices: int) -> Partitioner:
    """Partition by ranges of numbers, or by arbitrary classes."""
    if not by_range:
        return HashPartitioner(blocks)
    return RangePartitioner(np.arange(1, blocks) * vertices // blocks)


def by_blocks(
    program: AnyProgram,
    graph: Drawn,
    blocks: int,
    by_range: bool = False,
    *,
    change: Callable[[GraphBlock], GraphBlock] = lambda block: block,
    **limits: Any,
) -> Found:
    """Run a program on a graph in `blocks` blocks, each of which may be `change`d before."""
    home = cut(blocks, by_range, graph.vertices)
    cut_into = cut_blocks(graph.entries(), graph.vertices, home, graph.directed, program.view)
    parts = [change(block) for block in cut_into]
    carriers = MemoryCarrier.open(blocks)
    outcomes = run_blocks(program, parts, home, carriers, threads=2, space=Where.space, **limits)
    found = [own.placed(MemorySpace.HOST) for own in outcomes]
    number = np.concatenate([own.number for own in found])
    assert sorted(number.tolist()) == list(range(graph.vertices))
    assert len({(own.steps, own.converged, own.moved, own.exchanges, own.order) for own in found}) == 1
    state = {}
    for name in found[0].state:
        values = np.concatenate([own.state[name] for own in found])
        assert values.dtype == KINDS[program.state[name]]
        state[name] = values[np.argsort(number)]
    facts = [{name: fact for name, fact in own.facts.items() if "seconds" not in name} for own in found]
    assert all(own == facts[0] for own in facts)
    first, entries = found[0], sum(own.entries for own in found)
    return Found(state, first.steps, first.converged, first.moved, entries, facts[0], first.exchanges, first.order)


def arrays(block: GraphBlock) -> list[Any]:
    """Everything that a block has, with types."""
    rows = block.rows
    listed = [block.number, block.sources, rows.offsets, rows.source, rows.weight, block.times]
    plain = [block.group, block.vertices, block.view, block.symmetric, block.mutual]
    return [None if one is None else (one.dtype, one.tolist()) for one in listed] + plain


def check_centralities(table: pa.Table, graph: Any) -> None:
    """The columns of `betweenness`, `distances` and `hits` are what NetworkX finds."""
    ids = table["id"].to_pylist()
    between, near = nx.betweenness_centrality(graph), nx.closeness_centrality(graph)
    assert np.allclose(table["betweenness"], [between[v] for v in ids], atol=1e-14)
    assert np.allclose(table["closeness"], [near[v] for v in ids], rtol=1e-12)
    hubs, authorities = nx.hits(graph)
    assert np.allclose(table["hub"], [hubs[v] for v in ids], atol=1e-7)
    assert np.allclose(table["authority"], [authorities[v] for v in ids], atol=1e-7)
    far = {v: max(nx.single_source_shortest_path_length(graph, v).values()) for v in ids}
    assert table["eccentricity"].to_pylist() == [far[v] for v in ids]
