"""Dense groups and values of vertices of an updated result, from those of the earlier result if few edges changed.

Other threads read the tables of the earlier result. `tasks.dense.regrouping` has the algorithm for groups.
"""

from __future__ import annotations

from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.nest import nest_with_forest
from ...kernels.graph import Topology
from ...kernels.runtime.threads import kernel_threads
from ...tasks import dense
from ...tasks.dense.groups import dn_edges_among, tree_of, triangles_by_id
from ...tasks.dense.regrouping import ChangedEdges, EarlierGroups, GroupTables, Regrouped, earlier_groups, regroup
from ...tasks.device import MemorySpace
from ...tasks.messages import collect
from ...tasks.publish import lambda_columns as publish
from ...tasks.publish.changed_vertices import EdgePart, changed_summary, changed_vertices
from ...tasks.publish.lambda_columns import BucketSummary, BucketVertices
from ...tasks.update.merging import Change, NumberedGraph
from ..events import Events
from ..results.result import Result
from ..stages.exchange import exchange
from ..stages.extracting import Groups, record_of, sum_in_one_task
from ..stages.task_engine import TaskEngine
from .beginning import Start
from .finding_lambda import FoundLambda
from .tables import OneBucket
from .unchanged import beside


@dataclass(frozen=True)
class EarlierTables:
    """The groups and the values of vertices of an earlier result. Other threads read them from its tables.

    The result of each future raises InputError for damage.
    """

    groups: Future[EarlierGroups]
    values: Future[BucketVertices]
    """In the numbering of the change since."""

    @classmethod
    def of(cls, start: Start) -> EarlierTables | None:
        """Begin to read. None if λ is found from nothing, as all else is then."""
        if start.whole is not None:
            return None
        own = start.base, start.change
        return cls(beside(partial(_groups_of, *own)), beside(partial(_values_of, *own)))


def _groups_of(result: Result, change: Change) -> EarlierGroups:
    """The groups of a result, with vertices in the numbering of the change since."""
    with result.reading(), ThreadPoolExecutor(3) as readers:
        hierarchy, graphs, vertices = readers.map(
            lambda wanted: wanted[0].to_table(columns=wanted[1]),
            [
                (result.hierarchy, ["component", "k", "parent", "edges"]),
                (result.dn_graphs, ["id", "triangles"]),
                (result.vertices, ["component"]),
            ],
        )
    found = earlier_groups(
        GroupTables(
            component=_integers(hierarchy["component"]),
            level=_integers(hierarchy["k"]).astype(np.int32),
            parent=_integers(hierarchy["parent"]),
            edges=_integers(hierarchy["edges"]),
            innermost=_integers(vertices["component"]),
            dn_graph=_integers(graphs["id"]),
            triangles=_integers(graphs["triangles"]),
        )
    )
    vertex = np.full(len(change.ids), -1, np.int32)
    vertex[change.own] = found.vertex
    return replace(found, vertex=vertex)


def _integers(column: pa.ChunkedArray) -> NDArray[np.int64]:
    """A column as int64, -1 for null."""
    values: NDArray[np.int64] = column.fill_null(-1).to_numpy().astype(np.int64, copy=False)
    return values


def _values_of(result: Result, change: Change) -> BucketVertices:
    """The values of the vertices of a result, in the numbering of the change since."""
    with result.reading():
        table = result.vertices.to_table(columns=["degree", "triangles", "lambda"])

    def column(name: str, dtype: type[Any]) -> NDArray[Any]:
        values = np.zeros(len(change.ids), dtype)
        values[change.own] = table[name].to_numpy()
        return values

    lam = column("lambda", np.int32)
    return BucketVertices(0, column("degree", np.int64), column("triangles", np.int64), lam, lam)


MOST_TOUCHED = 0.1
"""If more than this share of the edges has other values, the values of vertices are summed over all edges."""

Values = tuple[BucketVertices, BucketSummary]


def vertex_values(
    start: Start,
    tables: EarlierTables | None,
    found: FoundLambda,
    one: OneBucket,
    before: NDArray[np.int32],
    threads: int,
) -> Values:
    """The values of the vertices of the new graph, and the summary of the graph for the manifest.

    `before` [edges of the earlier result] are their supports. Raises InputError for damage of the earlier result.
    """
    with kernel_threads(threads):
        return _values_from_earlier(start, tables, found, before) or _values_from_all(one)


def _values_from_all(one: OneBucket) -> Values:
    (edges,) = one.buckets.edges
    sums = collect(0, [publish.send_sums(edges, one.results)])
    vertices = publish.collect_vertices(edges, one.degrees(), one.results, sums)
    return vertices, publish.summarise(one.results, vertices)


def _values_from_earlier(
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


MOST_SEARCHED = 0.3
"""Share of the edges that a search from the earlier groups may take. Beyond it, groups are found from nothing.

Both take as long at 0.35 (cnr-2000, ego-Twitter). To learn the share takes a tenth of a search from nothing.
"""


def find_groups(
    engine: TaskEngine,
    events: Events,
    threads: int,
    start: Start,
    tables: EarlierTables | None,
    found: FoundLambda,
    graph: NumberedGraph,
) -> tuple[Groups, NDArray[np.int32]]:
    """The groups of `graph`, the new one, whose λ was `found`; and its forest, as in `State`.

    The event `grouped` tells how many edges were searched, and how many DN-graphs kept their edges. Raises InputError
    for damage of the earlier result.
    """
    lam, starts = found.order.lam, np.array([0, len(graph.ids)], np.int64)
    with events.stage("extract", 0):
        with kernel_threads(threads):
            made = _groups_from_earlier(start, tables, found) or _groups_from_nothing(graph, lam)
            tree = tree_of(made.nested, made.edges, starts)
            highest = int(lam.max(initial=0))
            groups = dense.collect_groups(tree, highest, {})
            kept = dn_edges_among(graph.edges, lam, tree, groups, made.triangles < 0)
        sums = sum_in_one_task(engine, [kept], starts, highest, MemorySpace.HOST)
        (counted,) = exchange(engine, "triangles", sums, dense.collect_triangles, [(groups,)])
        known = triangles_by_id(groups, made.triangles)
        triangles = np.where(known < 0, counted, known)
    events.emit("grouped", searched=made.searched, kept=int(np.count_nonzero(made.triangles >= 0)))
    return Groups([groups], [triangles], highest, record_of(engine, [groups])), made.forest


def _groups_from_nothing(graph: NumberedGraph, lam: NDArray[np.int32]) -> Regrouped:
    nested, is_forest = nest_with_forest(graph.edges.low, graph.edges.high, lam, len(graph.ids))
    edges = np.bincount(nested.edge, minlength=len(nested)).astype(np.int64)
    unknown = np.full(len(nested), -1, np.int64)
    return Regrouped(nested, edges, unknown, np.flatnonzero(is_forest).astype(np.int32), len(lam))


def _groups_from_earlier(start: Start, tables: EarlierTables | None, found: FoundLambda) -> Regrouped | None:
    """The components in the numbering of the new graph; None if they are to be found from nothing."""
    change, since = start.change, found.since
    if since is None or tables is None or start.order is None or start.forest is None:
        return None
    edges = ChangedEdges(
        change.before,
        start.order.lam,
        start.forest,
        change.removed,
        found.edges,
        found.order.lam,
        since.origin,
        since.changed,
    )
    made = regroup(edges, tables.groups.result(), int(MOST_SEARCHED * found.edges.edges))
    if made is None or change.stays.all():
        return made
    number = np.cumsum(change.stays, dtype=np.int32) - np.int32(1)
    nested = made.nested
    return replace(made, nested=replace(nested, vertex=nested.vertex[change.stays], least=number[nested.least]))
