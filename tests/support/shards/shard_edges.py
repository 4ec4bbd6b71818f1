"""From buckets to groups of shards and back, with no Dask: one loop for each exchange."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from drive import exchange
from edgemill.pipeline.stages.partitioning import OrderedGraph
from edgemill.tasks import ingest
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.ingest.numbering import BucketEdges
from edgemill.tasks.publish.lambda_columns import BucketResults
from edgemill.tasks.shards import group_edges, supports
from edgemill.tasks.shards.assignment import ShardAssignment
from edgemill.tasks.shards.supports import SortedEdges, send_edges, sort_edges

Edge = tuple[int, int]


def shapes(pages: int, members: int) -> dict[str, list[Edge]]:
    """Graphs of one shape each: a book of so many pages, a clique of so many members."""
    return {
        "one edge": [(0, 1)],
        "triangle": [(0, 1), (0, 2), (1, 2)],
        "star": [(0, leaf) for leaf in range(1, 40)],
        "wheel": [(0, rim) for rim in range(1, 30)] + [(rim, rim % 29 + 1) for rim in range(1, 30)],
        "hub and its book": [(0, 1)] + [(end, 2 + page) for page in range(pages) for end in (0, 1)],
        "clique": list(combinations(range(members), 2)),
        "cliques in a chain": [(7 * k + u, 7 * k + v) for k in range(4) for u, v in combinations(range(8), 2)],
    }


@dataclass(frozen=True)
class Sharded:
    """A graph in buckets and in groups."""

    assignment: ShardAssignment
    sorted: list[SortedEdges]
    supports: list[supports.BucketSupports]
    triangles: int
    groups: list[group_edges.GroupInput]

    def support(self, edges: Sequence[BucketEdges]) -> dict[Edge, int]:
        """The triangles of each edge, by its dense numbers."""
        return {
            edge: count
            for bucket, found in zip(edges, self.supports, strict=True)
            for edge, count in zip(numbers(bucket), found.support.tolist(), strict=True)
        }

    def collect(self, states: Sequence[tuple[np.ndarray, np.ndarray]]) -> list[BucketResults]:
        """λ of owned edges, by group, to the buckets."""
        return exchange(
            (group_edges.send_intervals(own.rows, *state) for own, state in zip(self.groups, states, strict=True)),
            len(self.supports),
            lambda b, mail: group_edges.collect_intervals(self.supports[b], mail),
        )


def buckets_of(edges: Sequence[Edge], vertices: int, buckets: int) -> list[BucketEdges]:
    """The buckets of a simple graph over the vertices 0 to vertices - 1."""
    starts = np.arange(buckets + 1, dtype=np.int64) * vertices // buckets
    low, high = np.array(sorted(edges), np.int32).reshape(-1, 2).T
    pairs = [(low >= starts[b]) & (low < starts[b + 1]) for b in range(buckets)]
    return [
        ingest.merge_pairs(b, starts, MemorySpace.HOST, None, {0: ingest.Pairs(low[own].copy(), high[own].copy())})
        for b, own in enumerate(pairs)
    ]


def numbers(edges: BucketEdges) -> list[Edge]:
    """The dense numbers of a bucket's edges."""
    return list(zip((edges.low + edges.first).tolist(), edges.highs[edges.high].tolist(), strict=True))


def shard(
    graph: OrderedGraph,
    groups: int,
    shards: int,
    together: int = 1,
    space: MemorySpace = MemorySpace.HOST,
    row_space: MemorySpace = MemorySpace.HOST,
) -> Sharded:
    """Bring the edges of buckets to groups, which lie in `space`; streams pass `together`, and each group
    begins with others. What publishing needs goes to `row_space`.
    """
    assignment = ShardAssignment.of(graph.edges[0].all_vertices, groups, shards)
    found = list(map(sort_edges, graph.oriented))
    closing = exchange(
        (send_edges(own, assignment) for own in found),
        groups,
        lambda g, mail: supports.collect_owned_edges(g, assignment, space, mail),
    )
    batches = [list(range(b, min(b + together, len(found)))) for b in range(0, len(found), together)]
    partials: list[list[np.ndarray]] = [[] for _ in batches]
    ends: list[supports.TriangleSums] = []
    for g, own in enumerate(closing):
        state = None
        for k in range(len(batches)):
            batch = (g + k) % len(batches)
            state = supports.count_streams(own, [found[b].stream for b in batches[batch]], state)
            partials[batch].append(state.partial)
        assert state is not None
        ends.append(state)
    starts = {
        b: (batch, sum(len(found[other]) for other in own if other < b))
        for batch, own in enumerate(batches)
        for b in own
    }
    totals = [supports.add_partials(supports.add_partials(None, own[:1]), own[1:]) for own in partials]
    by_bucket = exchange(
        map(supports.send_sums, closing, ends),
        len(found),
        lambda b, mail: supports.collect_supports(found[b], assignment, totals[starts[b][0]], starts[b][1], mail),
    )
    triangles = supports.check_triangles([own.total for own in by_bucket], [own.triangles for own in ends])
    edges = sum(own.closed for own in by_bucket)
    parts = exchange(
        (
            group_edges.send_supported_edges(own, counts, assignment)
            for own, counts in zip(found, by_bucket, strict=True)
        ),
        groups,
        lambda g, mail: group_edges.build_group_edges(g, assignment, edges, space, row_space, mail),
    )
    return Sharded(assignment, found, by_bucket, triangles, parts)
