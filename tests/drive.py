"""The whole chain from Parquet to subgraphs, and from results to files, with no Dask: one loop for each exchange.

What lies between the two, the schedules of bounding, is in bounding.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from edgemill import kernels
from edgemill.tasks import dense, publish, triangulate
from edgemill.tasks import ingest as steps
from edgemill.tasks.messages import Bundle, collect
from edgemill.tasks.numbering import BucketEdges
from edgemill.tasks.partition import HashPartitioner, Partitioner, RangePartitioner
from edgemill.tasks.partition import range as ranges
from edgemill.tasks.sources import Source, plan_blocks
from edgemill.tasks.subgraph import Subgraph, build_subgraph
from edgemill.tasks.writing import OutputFile, write_edges, write_vertices


@dataclass(frozen=True)
class Ingested:
    """What ingest leaves behind."""

    blocks: list[steps.BlockEdges]
    ids: list[steps.BucketIds]
    edges: list[BucketEdges]
    degrees: list[steps.BucketDegrees]
    starts: NDArray[np.int64]
    partitioner: Partitioner
    owned: list[steps.OwnedEdges]


def exchange(
    bundles: Iterable[Bundle[Any]], receivers: int, receive: Callable[[int, dict[int, Any]], Any]
) -> list[Any]:
    """Deliver all mail and call every receiver with its own; rows sent and rows received must agree."""
    sent = list(bundles)
    mail = [collect(receiver, sent) for receiver in range(receivers)]
    assert sum(sum(b.rows.values()) for b in sent) == sum(len(part) for parts in mail for part in parts.values())
    return [receive(receiver, mail[receiver]) for receiver in range(receivers)]


def ingest(
    source: Source,
    partitions: int = 1,
    method: Literal["range", "hash"] | Partitioner = "range",
    buckets: int | None = None,
    rows_per_block: int = 2_000_000,
    put: steps.Put = kernels.to_host,
) -> Ingested:
    """From Parquet to the edges each partition owns, with as many buckets as partitions unless told otherwise.

    `method` may also be a partitioner of that many partitions.
    """
    buckets = buckets or partitions
    blocks = [steps.read_block(source, block, put) for block in plan_blocks(source, rows_per_block)]
    every = steps.sample_interval(source.rows, buckets)
    splitters = steps.choose_splitters([steps.sample_ids(block, every) for block in blocks], buckets)

    bucket_ids = exchange(
        (steps.send_ids(block, splitters) for block in blocks),
        buckets,
        lambda b, mail: steps.number_ids(b, source.kind, put, mail),
    )
    starts = steps.bucket_starts([len(ids) for ids in bucket_ids])
    bundles = exchange(
        (steps.answer_numbers(ids, starts) for ids in bucket_ids),
        len(blocks),
        lambda i, mail: steps.send_pairs(steps.without_ids(blocks[i]), starts, mail),
    )
    edges = exchange(bundles, buckets, lambda b, mail: steps.merge_pairs(b, starts, put, mail))

    return _owned_by(Ordered.of(edges), blocks, bucket_ids, partitions, method, put)


@dataclass(frozen=True)
class Ordered:
    """Buckets of edges in degree order."""

    edges: list[BucketEdges]
    degrees: list[steps.BucketDegrees]
    oriented: list[steps.OrientedEdges]

    @classmethod
    def of(cls, edges: list[BucketEdges]) -> Ordered:
        """Find the order."""
        buckets, vertices = len(edges), edges[0].all_vertices
        sent = map(steps.send_degrees, edges)
        degrees = exchange(sent, buckets, lambda b, mail: steps.collect_degrees(edges[b], mail))
        starts = steps.order_starts([steps.degree_histogram(degree) for degree in degrees])
        ranks = [steps.rank_vertices(degrees[b], starts[b], vertices) for b in range(buckets)]
        answers = map(steps.answer_ranks, degrees, ranks)
        return cls(edges, degrees, exchange(answers, buckets, lambda b, mail: steps.orient(edges[b], ranks[b], mail)))

    def owned(self, partitioner: Partitioner, put: steps.Put) -> list[steps.OwnedEdges]:
        """The edges of each partition."""
        return exchange(
            (
                steps.send_owned(edges, oriented, partitioner)
                for edges, oriented in zip(self.edges, self.oriented, strict=True)
            ),
            partitioner.partitions,
            lambda p, mail: steps.collect_owned(p, put, mail),
        )


def _owned_by(
    graph: Ordered,
    blocks: list[steps.BlockEdges],
    ids: list[steps.BucketIds],
    partitions: int,
    method: Literal["range", "hash"] | Partitioner,
    put: steps.Put,
) -> Ingested:
    partitioner = _partitioner(graph.edges, graph.oriented, partitions, method) if isinstance(method, str) else method
    owned = graph.owned(partitioner, put)
    return Ingested(blocks, ids, graph.edges, graph.degrees, graph.edges[0].starts, partitioner, owned)


def _partitioner(
    edges: Sequence[BucketEdges], oriented: Sequence[steps.OrientedEdges], partitions: int, method: str
) -> Partitioner:
    if method == "hash":
        return HashPartitioner(partitions)
    if partitions == 1:
        return RangePartitioner()
    out = exchange(
        map(ranges.send_out_degrees, edges, oriented),
        len(edges),
        lambda b, mail: ranges.collect_out_degrees(edges[b], oriented[b], mail),
    )
    targets = ranges.cut_targets([int(counts.sum()) for counts in out], partitions)
    return ranges.range_partitioner([ranges.cuts_within(out[b], edges[b].first, targets[b]) for b in range(len(edges))])


def subgraphs(owned: Sequence[steps.OwnedEdges]) -> list[Subgraph]:
    """From the edges each partition owns to its subgraph."""
    partitions = len(owned)
    counted = exchange(
        (triangulate.send_lists(edges, partitions) for edges in owned),
        partitions,
        lambda p, mail: triangulate.count_triangles(owned[p], mail),
    )
    return exchange(
        (found.replies for found in counted),
        partitions,
        lambda p, mail: build_subgraph(owned[p], counted[p], partitions, mail),
    )


@dataclass(frozen=True)
class Groups:
    """What extraction leaves behind."""

    found: list[dense.BucketGroups]
    triangles: list[NDArray[np.int64]]


def extract(ingested: Ingested, results: Sequence[publish.BucketResults], put: steps.Put = kernels.to_host) -> Groups:
    """The dense groups, by the λ of all edges; triangles are counted in as many partitions, by hash."""
    edges, starts, buckets = ingested.edges, ingested.starts, range(len(ingested.edges))
    highest = max(int(own.low.max()) if len(own) else 0 for own in results)
    trees = list(map(dense.grow_tree, edges, ingested.degrees, results))
    sent = [dense.send_outline(tree, tree.bucket // 2) for tree in trees]
    while (tasks := -(-len(sent) // 2)) > 1:
        sent = exchange(sent, tasks, lambda t, mail: dense.join_outlines(t, t // 2, mail))
    (merged,) = exchange(sent, 1, lambda _, mail: dense.merge_outlines(starts, highest, mail))
    answers = [dense.answer_outlines(merged, highest)]
    found = exchange(answers, len(edges), lambda b, mail: dense.collect_groups(trees[b], highest, mail))
    kept = list(map(dense.dn_edges, edges, trees, found))
    owned = Ordered.of([own for own, _ in kept]).owned(HashPartitioner(len(ingested.owned)), put)
    partitions = len(owned)
    counted = exchange(
        (triangulate.send_lists(own, partitions) for own in owned),
        partitions,
        lambda p, mail: triangulate.count_triangles(owned[p], mail),
    )
    supports = exchange(
        (own.replies for own in counted), partitions, lambda p, mail: triangulate.supports(counted[p], mail)
    )
    by_bucket = exchange(
        (
            publish.send_results(steps.rows_to_publish(own), support, support, support)
            for own, support in zip(owned, supports, strict=True)
        ),
        len(edges),
        lambda b, mail: publish.collect_results(kept[b][0], mail),
    )
    sums = [dense.send_triangles(found[b], starts, highest, kept[b][1], by_bucket[b].support) for b in buckets]
    return Groups(found, exchange(sums, len(edges), lambda b, mail: dense.collect_triangles(found[b], mail)))


@dataclass(frozen=True)
class Published:
    """What publishing leaves behind."""

    results: list[publish.BucketResults]
    vertices: list[publish.BucketVertices]
    summaries: list[publish.BucketSummary]
    edge_files: list[OutputFile]
    vertex_files: list[OutputFile]


Answers = tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int32]]
"""Support, lower and upper end of λ of each owned edge of a partition."""


def publish_results(
    folder: Path, source: Source, ingested: Ingested, answers: Sequence[Answers], converged: bool = True, files: int = 1
) -> Published:
    """From each partition's answers about its owned edges to files below `folder`, so many of each bucket."""
    edges, buckets = ingested.edges, len(ingested.edges)
    results = exchange(
        (
            publish.send_results(steps.rows_to_publish(owned), *answer)
            for owned, answer in zip(ingested.owned, answers, strict=True)
        ),
        buckets,
        lambda b, mail: publish.collect_results(edges[b], mail),
    )
    vertices = exchange(
        map(publish.send_sums, edges, results),
        buckets,
        lambda b, mail: publish.collect_vertices(edges[b], ingested.degrees[b], results[b], mail),
    )
    names = exchange(
        map(publish.answer_names, ingested.ids, ingested.degrees),
        buckets,
        lambda b, mail: publish.join_names(edges[b], source.kind, mail),
    )

    def how(file: int) -> dict[str, Any]:
        return {"file": file, "files": files, "converged": converged}

    return Published(
        results,
        vertices,
        [publish.summarise(*found) for found in zip(results, vertices, strict=True)],
        [
            write_edges(folder, source, edges[b], ingested.ids[b].ids, names[b], results[b], **how(file))
            for b in range(buckets)
            for file in range(files)
        ],
        [
            write_vertices(folder, source, ingested.ids[b].ids, vertices[b], **how(file))
            for b in range(buckets)
            for file in range(files)
        ],
    )
