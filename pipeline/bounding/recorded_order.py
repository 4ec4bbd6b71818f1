"""The order in which a run in one process peels, for the state that the next night starts from."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...tasks.bound.peel import Peeled
from ...tasks.graph.subgraph import Subgraph
from ...tasks.ids.order import offsets
from ...tasks.ingest import OwnedRows
from ...tasks.update.order import Order
from ...tasks.update.whole import recorded_order
from ..cluster.engine import Engine, Future
from ..plan.limits import FILL
from ..plan.plan import Plan
from .schedule import BoundingResult

RECORD_BYTES = 36
"""Memory of an edge for the record of a peeling, and for the order that is made of it."""


def records_order(engine: Engine, plan: Plan) -> bool:
    """Whether peeling can record its order: in this process, on CPUs, where there is memory for it."""
    if not engine.shares_memory or plan.on_device or plan.in_shards or plan.partitions > 1:
        return False
    limit = plan.capacity.memory_bytes
    return not limit or plan.worker_bytes + RECORD_BYTES * plan.edges <= FILL * limit


def order_of_rows(
    engine: Engine,
    bounded: BoundingResult,
    rows: Sequence[Future],
    subgraphs: Sequence[Future],
    edges: Sequence[Future],
) -> Future | None:
    """The Order of the rows of the result, or None as its result if there is no record; None if none was requested.

    `rows` and `subgraphs` [1] are OwnedRows and Subgraph, `edges` [buckets] BucketEdges.
    """
    if bounded.peeled is None or not bounded.converged:
        return None
    sizes = engine.peek(edges, len)
    return engine.for_tasks(1).submit("order", _order_of, rows[0], subgraphs[0], bounded.peeled, sizes)


def _order_of(owned: OwnedRows, subgraph: Subgraph, peeled: Peeled, sizes: Sequence[int]) -> Order | None:
    """Task: the order of the peeling. `sizes` [buckets] are numbers of edges."""
    starts = offsets(np.array(sizes, np.int64)).astype(np.int32)
    return recorded_order(starts[owned.bucket] + owned.row, subgraph, peeled)
