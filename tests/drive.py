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
from edgemill.tasks import ingest as steps
from edgemill.tasks import publish, triangulate
from edgemill.tasks.messages import Bundle, collect
from edgemill.tasks.numbering import BucketEdges
from edgemill.tasks.partition import HashPartitioner, Partitioner, RangePartitioner
from edgemill.tasks.partition import range as ranges
from edgemill.tasks.reading import Nulls
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
    nulls: Nulls = "refuse",
    put: steps.Put = kernels.to_host,
) -> Ingested:
    """From Parquet to the edges each partition owns, with as many buckets as partitions unless told otherwise.

    `method` may also be a partitioner of that many partitions.
    """
    buckets = buckets or partitions
    blocks = [steps.read_block(source, block, nulls, put) for block in plan_blocks(source, rows_per_block)]
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

    degrees = exchange(map(steps.send_degrees, edges), buckets, lambda b, mail: steps.collect_degrees(edges[b], mail))
    rank_starts = steps.order_starts([steps.degree_histogram(degree) for degree in degrees])
    ranks = [steps.rank_vertices(degrees[b], rank_starts[b], int(starts[-1])) for b in range(buckets)]
    oriented = exchange(
        map(steps.answer_ranks, degrees, ranks), buckets, lambda b, mail: steps.orient(edges[b], ranks[b], mail)
    )

    partitioner = _partitioner(edges, oriented, partitions, method) if isinstance(method, str) else method
    owned = exchange(
        (steps.send_owned(edges[b], oriented[b], partitioner) for b in range(buckets)),
        partitions,
        lambda p, mail: steps.collect_owned(p, put, mail),
    )
    return Ingested(blocks, bucket_ids, edges, degrees, starts, partitioner, owned)


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
