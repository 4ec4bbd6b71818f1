"""A NetworkX graph with its edges as arrays, and its triangles and λ."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.threads import kernel_threads, most_threads
from ...tasks.bound.in_memory import find_lambda, find_triangles
from ...tasks.programs import Entries, Outcome, Program, run_in_one_block
from ..cluster.connecting.guard import guarded_call


class CountedGraph:
    """A networkx graph at the time of construction. Its triangles and λ are computed at first use.

    Triangles and λ are defined for undirected graphs without parallel edges; programs run on all graphs. Attributes of
    nodes and edges are read from the graph itself, which must not change meanwhile. `__networkx_backend__` tells
    NetworkX which backend the graph belongs to.
    """

    __networkx_backend__ = "edgemill"

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.nodes: list[Any] = list(graph)
        """In NetworkX's order."""
        self.index = {node: index for index, node in enumerate(self.nodes)}
        ends = np.fromiter(_ends(graph, self.index), np.int32).reshape(-1, 2)
        self.source, self.target = (np.ascontiguousarray(ends[:, end]) for end in (0, 1))
        """[edges] indices of the nodes, in the order of `graph.edges`, with loops."""
        loop = self.source == self.target
        self.loops = int(np.count_nonzero(loop))
        """Edges from a node to itself."""
        self.low: NDArray[np.int32] = self.source[~loop]
        self.high: NDArray[np.int32] = self.target[~loop]
        """[edges] indices of the nodes without loops. Arrays of the properties below have the same order."""

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """[nodes] Edges of each node, without loops."""
        return self._sums(np.ones(len(self.low), np.int64))

    @cached_property
    def support(self) -> NDArray[np.int32]:
        """[edges] Triangles of each edge."""
        return self._by_edge(self._found[1].support)

    @cached_property
    def twice_triangles(self) -> NDArray[np.int64]:
        """[nodes] Twice the triangles of each node: the sum of the supports of its edges."""
        return self._sums(self.support)

    @cached_property
    def lam(self) -> NDArray[np.int32]:
        """[edges] λ."""
        with guarded_call(), kernel_threads(most_threads()):
            return self._by_edge(find_lambda(self._found[1]))

    def weights(self, name: Any) -> NDArray[np.float64]:
        """[edges of `source`] The graph's current value of the attribute `name`, 1 for an edge without it."""
        return np.fromiter((value for _, _, value in self.graph.edges(data=name, default=1)), np.float64)

    def run(
        self, program: Program, weight: NDArray[np.float64] | None = None, *, most_steps: int | None = None
    ) -> Outcome:
        """Run a vertex program in this process; arrays are in the order of `nodes`. `weight` [edges of `source`]."""
        edges = Entries(self.source, self.target, weight)
        with guarded_call(), kernel_threads(most_threads()):
            return run_in_one_block(program, edges, len(self.nodes), self.is_directed(), most_steps=most_steps)

    def is_directed(self) -> bool:
        """Whether the graph is directed."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """Whether the graph can have parallel edges."""
        return bool(self.graph.is_multigraph())

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.index
        except TypeError:  # a list of nodes is not a node
            return False

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    @cached_property
    def _found(self) -> Any:
        with guarded_call(), kernel_threads(most_threads()):
            return find_triangles(self.low, self.high, len(self.nodes))

    def _by_edge(self, values: NDArray[np.int32]) -> NDArray[np.int32]:
        ordered = np.empty_like(values)
        ordered[self._found[0].row] = values
        return ordered

    def _sums(self, values: NDArray[Any]) -> NDArray[np.int64]:
        sums = np.zeros(len(self.nodes), np.int64)
        np.add.at(sums, self.low, values)
        np.add.at(sums, self.high, values)
        return sums


def _ends(graph: Any, index: dict[Any, int]) -> Iterator[int]:
    for source, target in graph.edges():
        yield index[source]
        yield index[target]
