"""A NetworkX graph with its edges as arrays, and what edgemill finds in them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.threads import kernel_threads
from ...tasks.alone import find_lambda, find_triangles
from ...tasks.programs import Entries, Outcome, Program, run_alone

__all__ = ["CountedGraph"]


class CountedGraph:
    """A networkx graph as it was when this was made, and its triangles and λ, each found when first asked.

    Triangles and λ are those of undirected graphs without parallel edges; programs run on all graphs. Attributes of
    nodes and edges are read from the graph itself, which is not to be changed meanwhile. NetworkX knows by
    `__networkx_backend__` whose it is.
    """

    __networkx_backend__ = "edgemill"

    def __init__(self, graph: Any) -> None:
        self.graph = graph
        self.nodes: list[Any] = list(graph)
        """In NetworkX's order."""
        self.place = {node: place for place, node in enumerate(self.nodes)}
        ends = np.fromiter(_ends(graph, self.place), np.int32).reshape(-1, 2)
        self.source, self.target = (np.ascontiguousarray(ends[:, end]) for end in (0, 1))
        """[edges] places of the nodes, in the order of `graph.edges`, loops among them."""
        loop = self.source == self.target
        self.loops = int(np.count_nonzero(loop))
        """Edges from a node to itself."""
        self.low: NDArray[np.int32] = self.source[~loop]
        self.high: NDArray[np.int32] = self.target[~loop]
        """[edges] the same without loops, as in all arrays that follow."""

    @cached_property
    def degree(self) -> NDArray[np.int64]:
        """[nodes] Edges of each, loops left out."""
        return self._sums(np.ones(len(self.low), np.int64))

    @cached_property
    def support(self) -> NDArray[np.int32]:
        """[edges] Triangles that each is in."""
        return self._by_edge(self._found[1].support)

    @cached_property
    def twice_triangles(self) -> NDArray[np.int64]:
        """[nodes] Twice the triangles that each is in: the sum of the supports of its edges."""
        return self._sums(self.support)

    @cached_property
    def lam(self) -> NDArray[np.int32]:
        """[edges] λ."""
        with kernel_threads(_cores()):
            return self._by_edge(find_lambda(self._found[1]))

    def weights(self, name: Any) -> NDArray[np.float64]:
        """[edges of `source`] the attribute of that name as the graph has it now, 1 where an edge has none."""
        return np.fromiter((value for _, _, value in self.graph.edges(data=name, default=1)), np.float64)

    def run(
        self, program: Program, weight: NDArray[np.float64] | None = None, *, most_steps: int | None = None
    ) -> Outcome:
        """Run a program in this process; its arrays are in the order of `nodes`. `weight` [edges of `source`]."""
        edges = Entries(self.source, self.target, weight)
        with kernel_threads(_cores()):
            return run_alone(program, edges, len(self.nodes), self.is_directed(), most_steps=most_steps)

    def is_directed(self) -> bool:
        """As NetworkX asks; the same for the next."""
        return bool(self.graph.is_directed())

    def is_multigraph(self) -> bool:
        """As NetworkX asks."""
        return bool(self.graph.is_multigraph())

    def __contains__(self, node: object) -> bool:
        try:
            return node in self.place
        except TypeError:  # a list of nodes is none
            return False

    def __len__(self) -> int:
        return len(self.nodes)

    def __iter__(self) -> Iterator[Any]:
        return iter(self.nodes)

    @cached_property
    def _found(self) -> Any:
        with kernel_threads(_cores()):
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


def _ends(graph: Any, place: dict[Any, int]) -> Iterator[int]:
    for source, target in graph.edges():
        yield place[source]
        yield place[target]


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
