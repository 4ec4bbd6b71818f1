"""The values of vertices of the new graph: from those of the earlier result, or from all edges."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from .... import kernels
from ....kernels.graph import Topology
from ....kernels.runtime.threads import kernel_threads
from ....tasks.messages import collect
from ....tasks.publish import lambda_columns as publish
from ....tasks.publish.changed_vertices import EdgePart, changed_summary, changed_vertices
from ....tasks.publish.lambda_columns import BucketSummary, BucketVertices
from ..search.finding_lambda import FoundLambda
from ..start import Start
from ..tables import OneBucket
from .earlier import EarlierTables

MOST_TOUCHED = 0.1
"""Share of the edges with other values beyond which the values of vertices are summed over all edges."""

Values = tuple[BucketVertices, BucketSummary]


def vertex_values(
    start: Start,
    tables: EarlierTables | None,
    found: FoundLambda,
    one: OneBucket,
    before: NDArray[np.int32],
    threads: int,
) -> Values:
    """The values of the vertices of the new graph, and what the manifest needs of all edges.

    `before` [edges of the earlier result] are their supports. Raises InputError for damage of the earlier result.
    """
    with kernel_threads(threads):
        return _from_earlier(start, tables, found, before) or _from_all(one)


def _from_all(one: OneBucket) -> Values:
    (edges,) = one.buckets.edges
    sums = collect(0, [publish.send_sums(edges, one.results)])
    vertices = publish.collect_vertices(edges, one.degrees(), one.results, sums)
    return vertices, publish.summarise(one.results, vertices)


def _from_earlier(
    start: Start, tables: EarlierTables | None, found: FoundLambda, before: NDArray[np.int32]
) -> Values | None:
    change, since = start.change, found.since
    if since is None or tables is None or start.order is None:
        return None
    rows = kernels.nonzero(found.touched)
    if len(rows) > MOST_TOUCHED * found.edges.edges:
        return None
    was = since.origin[rows]
    old = np.concatenate([kernels.nonzero(change.removed), was[was >= 0]])
    gone = _part(change.before, before, start.order.lam, old)
    come = _part(found.edges, found.support, found.order.lam, rows)
    made = changed_vertices(tables.values.result(), gone, come, found.edges, found.order.lam)
    stays = change.stays
    most = made.low[stays]
    vertices = BucketVertices(0, made.degree[stays], made.triangles[stays], most, most)
    then = start.base.manifest
    histogram = np.array(then.lam.histogram, np.int64).reshape(-1, 2)
    support = 3 * (then.counts.triangles or 0)
    return vertices, changed_summary(support, histogram, gone, come, found.edges.edges, vertices)


def _part(edges: Topology, support: NDArray[np.int32], lam: NDArray[np.int32], rows: NDArray[np.integer]) -> EdgePart:
    low, high, supports, levels = (kernels.take(values, rows) for values in (edges.low, edges.high, support, lam))
    return EdgePart(Topology(low, high, edges.vertices), supports, levels)
