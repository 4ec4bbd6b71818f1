"""The driver's stages without Dask: each task runs when it is asked for, and its result is its own future."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np

from benchmarks.whole_graph import WholeGraph
from edgemill import kernels
from edgemill.pipeline.exchange import exchange, send
from edgemill.pipeline.partitioning import Ordered, place
from edgemill.tasks import identity, ingest, order
from edgemill.tasks.ingest import OrientedEdges
from edgemill.tasks.numbering import BucketEdges


class Here:
    """As much of an Engine as partitioners ask for."""

    run_id = "here"
    shares_memory = True
    homes = None

    def places(self, receivers: Sequence[int]) -> None:
        """Anywhere."""

    def map(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], at: object = None
    ) -> list[Any]:
        """The results."""
        return [function(*own) for own in arguments]

    def gather(self, results: Sequence[Any]) -> list[Any]:
        """The results."""
        return list(results)

    def peek(self, results: Sequence[Any], part: Callable[[Any], Any]) -> list[Any]:
        """That part of each."""
        return list(map(part, results))


def placed(graph: WholeGraph, method: str, partitions: int) -> np.ndarray[Any, np.dtype[np.int16]]:
    """The partition of each vertex, int16 [vertices] by dense number, as a run with as many buckets as partitions puts
    them.
    """
    return place(_ordered(graph, partitions), method, partitions)(np.arange(graph.vertices))


def _ordered(graph: WholeGraph, buckets: int) -> Ordered:
    whole, everyone = graph.edges, range(buckets)
    starts = identity.split(graph.ids, ingest.choose_splitters(graph.samples, buckets))
    cuts = np.searchsorted(whole.low, starts)
    edges, oriented = [], []
    for b in everyone:
        rows = slice(cuts[b], cuts[b + 1])
        highs, (code,) = order.encode(whole.highs[whole.high[rows]])
        low = (whole.low[rows] - starts[b]).astype(np.int32)
        edges.append(BucketEdges(b, starts, low, code, highs, 0))
        given = graph.oriented
        oriented.append(OrientedEdges(b, given.low[rows], given.high[rows], given.swapped[rows]))
    engine: Any = Here()
    sent = send(engine, "send-degrees", "degrees", ingest.send_degrees, [(own,) for own in edges])
    degrees = exchange(engine, "degrees", sent, ingest.collect_degrees, [(own,) for own in edges])
    return Ordered(engine, cast(Any, edges), degrees, cast(Any, oriented), graph.vertices, kernels.to_host)
