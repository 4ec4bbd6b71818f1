"""Peeling of the groups of one process on its GPU, one shard each, with detection of lost groups.

All groups first agree over their carriers on the transport of their messages; see `transport`. The carriers then relay
the messages, or carry heartbeats only.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from ...errors import ClusterLost
from ..carriers.carrier import EMPTY, Carrier
from ..group_edges import ShardEdges
from .shard import ShardOnGpu, ShardTotals, check_totals, peel_shards_on_gpu
from .transport import open_transport, running_threads


def peel_groups_on_gpu(
    edges: Sequence[ShardEdges],
    carriers: Sequence[Carrier],
    before: Sequence[ShardOnGpu] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    way: str = "auto",
) -> list[ShardOnGpu]:
    """Peel the groups of one process; all processes call this at the same time.

    `carriers` are by group. `way` is the transport to use, as in `open_transport`; `before`, `seconds` and `progress`
    are as in `peel_shards_on_gpu`. Raises ClusterLost within 30 s when another group is lost, UsageError for a
    transport that is not available, InternalError when a rule of conservation is violated.
    """
    with ThreadPoolExecutor(len(edges), "groups") as pool, ExitStack() as stack:
        try:
            transport = open_transport(edges, carriers, way, pool, stack)
            with running_threads(transport.threads):
                try:
                    found = peel_shards_on_gpu(edges, transport.mails, before, seconds, progress)
                except ClusterLost as error:
                    raise next(
                        (thread.error for thread in transport.threads if thread.error is not None), error
                    ) from error
            totals, *_ = pool.map(_gather_totals, carriers, found)
            check_totals(totals)
        except BaseException:
            for carrier in carriers:
                carrier.abandon()
            raise
    return [replace(state, way=transport.name, why=transport.why) for state in found]


def _gather_totals(carrier: Carrier, state: ShardOnGpu) -> list[ShardTotals]:
    """The totals of all groups, by rank."""
    words = np.array([value % 2**64 for value in state.totals], np.uint64).view(np.uint32)
    packets = carrier.exchange(words, [EMPTY] * carrier.groups)
    return [ShardTotals(*packet.common.view(np.uint64).tolist()) for packet in packets]
