"""A tiny run, so that all that the tasks call is compiled before the clock of a stage runs.

Of one thread: several would all compile what they all meet first.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from . import dense, identity, ingest, order, publish
from .bound import band, fixpoint
from .bound.intervals import Intervals
from .bound.peel import peel, peel_intervals
from .identity import Put
from .ingest import OwnedEdges
from .messages import Bundle, collect
from .partition import HashPartitioner, RangePartitioner
from .reading import IdRows
from .subgraph import Subgraph, build_subgraph
from .triangulate import count_triangles, send_lists

CLIQUE = 6
"""Vertices of each of the cliques that are run."""
CLIQUES = 1024
"""So many that no array is small: CuPy has kernels of their own for those."""


def run_clique(
    method: str, partitions: int, put: Callable[[OwnedEdges], OwnedEdges], compact_rows: bool = False
) -> list[Intervals]:
    """λ of cliques by `method`, in two partitions or one, over the arrays that `put` gives. Mail goes one way only.
    `compact_rows` are for peeling on a GPU.

    Peeling is of one: several partitions are peeled as shards, and `tasks.shards` has a run for these.
    """
    count = 1 if method == "peel" else min(partitions, 2)
    owned = [put(_owned(p, count)) for p in range(count)]
    lists = [send_lists(edges, count) for edges in owned]
    counted = [count_triangles(edges, collect(p, lists)) for p, edges in enumerate(owned)]
    replies = [found.replies for found in counted]
    subgraphs = [build_subgraph(owned[p], counted[p], count, collect(p, replies)) for p in range(count)]
    if method == "peel":
        return [peel_intervals(subgraphs[0], peel(subgraphs[0], compact_rows=compact_rows))]
    return _band(subgraphs) if method == "band" else _fixpoint(subgraphs)


def run_ingest(put: Put) -> int:
    """Number, order and sum up the edges of cliques from two blocks in two buckets; gives how many came out."""
    ends = _edges().T
    rows = IdRows(np.append(ends[0], [0, 1]), np.append(ends[1], [0, 0]))  # with a loop and a repetition
    blocks = [ingest.clean(0, rows, put), ingest.clean(1, rows, put)]
    samples = [ingest.sample_ids(block, 2) for block in blocks]
    splitters = ingest.choose_splitters(samples, 2)
    parts = (0, 1)
    sent = [ingest.send_ids(block, splitters) for block in blocks]
    ids = [ingest.number_ids(b, "integer", put, collect(b, sent)) for b in parts]
    starts = ingest.bucket_starts([len(own) for own in ids])
    answers = [ingest.answer_numbers(own, starts) for own in ids]
    pairs = [ingest.send_pairs(ingest.without_ids(block), starts, collect(block.number, answers)) for block in blocks]
    edges = [ingest.merge_pairs(b, starts, put, collect(b, pairs)) for b in parts]
    counts = [ingest.send_degrees(own) for own in edges]
    degrees = [ingest.collect_degrees(edges[b], collect(b, counts)) for b in parts]
    firsts = ingest.order_starts([ingest.degree_histogram(own) for own in degrees])
    ranks = [ingest.rank_vertices(degrees[b], firsts[b], CLIQUE * CLIQUES) for b in parts]
    asked = [ingest.answer_ranks(degrees[b], ranks[b]) for b in parts]
    oriented = [ingest.orient(edges[b], ranks[b], collect(b, asked)) for b in parts]
    results = []
    for partitioner in (RangePartitioner(), RangePartitioner(np.array([CLIQUE * CLIQUES // 2])), HashPartitioner(2)):
        owned_parts = [ingest.send_owned(edges[b], oriented[b], partitioner) for b in parts]
        owned = [ingest.collect_owned(p, put, collect(p, owned_parts)) for p in range(partitioner.partitions)]
        results = [publish.send_results(ingest.rows_to_publish(o), 2 * o.row, o.row, o.row) for o in owned]
    found = [publish.collect_results(edges[b], collect(b, results)) for b in parts]
    sums = [publish.send_sums(edges[b], found[b]) for b in parts]
    _extract(edges, degrees, found)
    edges_out = 0
    for b in parts:
        vertices = publish.collect_vertices(edges[b], degrees[b], found[b], collect(b, sums))
        publish.answer_names(ids[b], degrees[b])
        identity.take(ids[b].ids, edges[b].low)
        edges_out += publish.summarise(found[b], vertices).edges
    return edges_out


def _extract(
    edges: list[ingest.BucketEdges], degrees: list[ingest.BucketDegrees], results: list[publish.BucketResults]
) -> None:
    starts, highest = edges[0].starts, 3
    levels = [own.low % np.int32(highest + 1) for own in results]
    results = [
        publish.BucketResults(own.bucket, own.support, low, low) for own, low in zip(results, levels, strict=True)
    ]
    trees = list(map(dense.grow_tree, edges, degrees, results))
    joined = dense.join_outlines(0, 0, collect(0, [dense.send_outline(tree, 0) for tree in trees]))
    merged = dense.merge_outlines(starts, highest, collect(0, [joined]))
    answers = [dense.answer_outlines(merged, highest)]
    for b, tree in enumerate(trees):
        found = dense.collect_groups(tree, highest, collect(b, answers))
        own, place = dense.dn_edges(edges[b], tree, found)
        dense.send_triangles(found, starts, highest, place, own.low)


def _edges() -> NDArray[np.int64]:
    """[edges, 2] ends of all edges, sorted."""
    one = np.array(list(combinations(range(CLIQUE), 2)), np.int64)
    return (CLIQUE * np.arange(CLIQUES)[:, None, None] + one).reshape(-1, 2)


def _owned(partition: int, partitions: int) -> OwnedEdges:
    edges = _edges()
    edges = edges[edges[:, 0] % partitions == partition]
    rank = np.unique(edges)
    low, high = np.searchsorted(rank, edges.T).astype(np.int32)
    offsets = order.offsets(np.bincount(low, minlength=len(rank)))
    part = (rank % partitions).astype(np.int16)
    row = np.arange(len(edges), dtype=np.int32)
    return OwnedEdges(partition, rank, part, offsets, high, np.zeros(len(edges), np.int16), row)


def _band(subgraphs: list[Subgraph]) -> list[Intervals]:
    """Filters at 4, which is silent, and at 5, at which everything falls."""
    highest = max(len(band.support_histogram(subgraph)) for subgraph in subgraphs)
    states = [band.start_bands(subgraph, highest) for subgraph in subgraphs]
    top = CLIQUE - 2
    for batch in ([band.Order(0, 0, top, 0)], [band.Order(0, top, 0, top + 1)], []):
        sent: list[Bundle[band.EdgeNumbers]] = []
        for p, subgraph in enumerate(subgraphs):
            states[p], mail, _ = band.band_exchange(subgraph, states[p], [batch], 0, collect(p, sent))
            sent.append(mail)
    done = [band.Order(top, top + 1, 0, 0)]
    return [band.band_intervals(subgraph, states[p], [done], {}) for p, subgraph in enumerate(subgraphs)]


def _fixpoint(subgraphs: list[Subgraph]) -> list[Intervals]:
    found: list[Intervals] = []
    sent: list[Bundle[fixpoint.FallenBounds]] = []
    for p, subgraph in enumerate(subgraphs):
        bound = fixpoint.start_bounds(subgraph, CLIQUE)
        bound, _, _ = fixpoint.fixpoint_exchange(subgraph, bound, "hindex", True, {})
        bound, mail, _ = fixpoint.fixpoint_exchange(subgraph, bound, "hindex", False, collect(p, sent))
        sent.append(mail)
        found.append(fixpoint.fixpoint_intervals(subgraph, bound, True))
    return found
