"""A whole graph in one place, with what a simulation of partitions needs of it: degree order, supports, λ by rounds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from benchmarks import walks
from benchmarks.graphs import Answers, Graph
from edgemill import kernels
from edgemill.kernels.graph import Adjacency, Topology
from edgemill.tasks import ingest, order
from edgemill.tasks.messages import collect
from edgemill.tasks.numbering import BucketEdges
from edgemill.tasks.sources import open_source, plan_blocks

BLOCK_ROWS = 1_000_000
MOST_BUCKETS = 256
"""Ids are sampled for so many buckets."""
COMPACT_AT = 0.85
"""Rows are compacted when this share of their edges is left."""


@dataclass(frozen=True)
class Rounds:
    """How a graph is peeled, in one piece or in step."""

    lam: NDArray[np.int32]
    """[local edges] λ"""
    round: NDArray[np.int32]
    """[local edges] round in which the edge falls, over all levels."""
    levels: int
    """Levels at which edges fall."""
    rounds: int


@dataclass(frozen=True)
class WholeGraph:
    """A simple graph. Vertices have two numbers: *dense* ones in id order, and their *ranks* in degree order.

    Edges are sorted by (low, high) rank. *Local* edges are those with triangles, which subgraphs hold.
    """

    name: str
    rows: int
    block_ids: int
    """Distinct ids of each block of a million rows or so, added up."""
    block_edges: int
    """Distinct edges of each block, added up."""
    ids: NDArray[np.int64]
    """[vertices] original ids, by dense number."""
    samples: list[NDArray[np.int64]]
    """Ids that buckets are cut by, as a run draws them."""
    edges: BucketEdges
    """As a run with one bucket has them, in dense numbers."""
    oriented: ingest.OrientedEdges
    dense: NDArray[np.int32]
    """[vertices] dense number of each rank."""
    offsets: NDArray[np.int64]
    """[vertices + 1] oriented CSR by rank."""
    high: NDArray[np.int32]
    """[edges] rank of the higher end."""
    low: NDArray[np.int32]
    """[edges] rank of the lower end."""
    support: NDArray[np.int32]
    """[edges]"""
    local: NDArray[np.int32]
    """[local edges] their places among all edges, ascending."""
    topology: Topology
    """Of the local edges, by rank."""
    rows_of: Adjacency
    """Of the local edges."""
    peeled: Rounds
    vertex_most: int
    """Local edges that an owner holds for one vertex alone: the one that is in the middle of most triangles."""

    @property
    def vertices(self) -> int:
        """Vertices of the graph."""
        return len(self.ids)

    @property
    def triangles(self) -> int:
        """Triangles of the graph."""
        return int(self.support.sum(dtype=np.int64)) // 3

    def answers(self) -> Answers:
        """As the catalogue has them, by peeling."""
        lam = self.peeled.lam
        return Answers(
            self.vertices, len(self.high), self.triangles, int(lam.max(initial=0)), int(lam.sum(dtype=np.int64))
        )


def whole_graph(graph: Graph) -> WholeGraph:
    """Read and peel a graph with integer ids. Raises WrongAnswer if λ is not as the catalogue has it."""
    source = open_source(str(graph.path))
    blocks = [ingest.read_block(source, block) for block in plan_blocks(source, BLOCK_ROWS)]
    block_ids, block_edges = sum(len(block.ids) for block in blocks), sum(map(len, blocks))
    every = ingest.sample_interval(source.rows, MOST_BUCKETS)
    samples = [ingest.sample_ids(block, every) for block in blocks]
    none = ingest.choose_splitters(samples, 1)
    ids = ingest.number_ids(
        0, source.kind, kernels.to_host, collect(0, [ingest.send_ids(block, none) for block in blocks])
    )
    starts = ingest.bucket_starts([len(ids)])
    numbers = [ingest.answer_numbers(ids, starts)]
    pairs = [
        ingest.send_pairs(ingest.without_ids(block), starts, collect(i, numbers)) for i, block in enumerate(blocks)
    ]
    del blocks
    edges = ingest.merge_pairs(0, starts, kernels.to_host, collect(0, pairs))
    del pairs
    degrees = ingest.collect_degrees(edges, collect(0, [ingest.send_degrees(edges)]))
    rank = ingest.rank_vertices(degrees, ingest.order_starts([ingest.degree_histogram(degrees)])[0], len(ids))
    oriented = ingest.orient(edges, rank, collect(0, [ingest.answer_ranks(degrees, rank)]))
    dense = np.empty(len(ids), np.int32)
    dense[rank] = np.arange(len(ids), dtype=np.int32)
    by_pair = order.order_pairs(oriented.low, oriented.high, len(ids), len(ids))
    low, high = oriented.low[by_pair], oriented.high[by_pair]
    offsets = order.offsets(np.bincount(low, minlength=len(ids)))
    support, gain, _ = kernels.intersect(offsets, high, offsets, high, np.ones(len(ids), np.bool_))
    support += gain
    local = np.flatnonzero(support).astype(np.int32)
    topology = Topology(low[local], high[local], len(ids))
    rows_of = kernels.adjacency(topology)
    found = WholeGraph(
        graph.name,
        source.rows,
        block_ids,
        block_edges,
        ids.ids,
        samples,
        edges,
        oriented,
        dense,
        offsets,
        high,
        low,
        support,
        local,
        topology,
        rows_of,
        _peel(topology, rows_of, support[local]),
        _held_for_one(offsets, high, low, local),
    )
    graph.check(found.answers())
    return found


def _held_for_one(
    offsets: NDArray[np.int64], high: NDArray[np.int32], low: NDArray[np.int32], local: NDArray[np.int32]
) -> int:
    middles = walks.count_middles(offsets, high)
    if not len(middles):
        return 0
    alone = np.zeros(len(middles), np.int16)
    alone[middles.argmax()] = 1
    copies, *_ = walks.mark_copies(offsets, high, alone, 2)
    ghosts = np.count_nonzero(copies & np.uint64(2))
    return int(ghosts + np.count_nonzero(alone[low[local]]))


def _peel(topology: Topology, rows: Adjacency, support: NDArray[np.int32]) -> Rounds:
    """Level by level, and within a level round by round, as tasks.bound.peel does it; only that rounds are kept."""
    count, left = support.copy(), topology.edges
    falls = walks.Falls(topology, np.zeros(topology.edges, np.int16))
    band, threshold = np.zeros(topology.edges, np.int32), np.zeros(1, np.int32)
    lam, round_of = np.zeros(topology.edges, np.int32), np.zeros(topology.edges, np.int32)
    level = levels = rounds = 0
    in_rows, standing = left, np.arange(topology.edges, dtype=np.int32)
    while left:
        standing = standing[count[standing] >= 0]
        level = max(level, int(count[standing].min()))
        threshold[0] = level + 1
        frontier = standing[count[standing] <= level]
        falls.begin(count, frontier)
        levels += 1
        while len(frontier):
            lam[frontier], round_of[frontier] = level, rounds
            rounds += 1
            left -= len(frontier)
            frontier = falls.at_owners(rows, frontier, count, band, threshold)
        if left < COMPACT_AT * in_rows:
            rows, in_rows = kernels.compact(rows, count >= 0), left
    return Rounds(lam, round_of, levels, rounds)
