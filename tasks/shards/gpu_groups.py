"""Groups of shards on GPUs, one shard each: how their mail goes, and how a lost group is noticed.

All groups meet over their carriers first, and choose the way of their mail; see `gpu_mail`. Carriers then carry it, or
only tell that all groups live.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import replace

import numpy as np

from ..errors import ClusterLost
from .carrier import Carrier
from .edges import ShardEdges
from .gpu_couriers import at_work
from .gpu_mail import open_mail
from .on_gpu import ShardOnGpu, Totals, check_totals, peel_shards_on_gpu
from .telling import NOTHING

__all__ = ["peel_groups_on_gpu"]


def peel_groups_on_gpu(
    edges: Sequence[ShardEdges],
    carriers: Sequence[Carrier],
    before: Sequence[ShardOnGpu] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    way: str = "auto",
) -> list[ShardOnGpu]:
    """Peel the groups of one process, which has the `carriers` [groups]; all processes call this at once.

    `way` is as in `open_mail`; `before`, `seconds` and `progress` are as in `peel_shards_on_gpu`. Raises ClusterLost
    when another group is lost, within 30 s; UsageError for a way that cannot be gone; InternalError when a rule of
    conservation is violated.
    """
    with ThreadPoolExecutor(len(edges), "groups") as pool, ExitStack() as stack:
        try:
            mail = open_mail(edges, carriers, way, pool, stack)
            with at_work(mail.threads):
                try:
                    found = peel_shards_on_gpu(edges, mail.mails, before, seconds, progress)
                except ClusterLost as error:
                    raise next((thread.error for thread in mail.threads if thread.error is not None), error) from error
            totals, *_ = pool.map(_gather_totals, carriers, found)
            check_totals(totals)
        except BaseException:
            for carrier in carriers:
                carrier.abandon()
            raise
    return [replace(state, way=mail.way, why=mail.why) for state in found]


def _gather_totals(carrier: Carrier, state: ShardOnGpu) -> list[Totals]:
    """Of all groups."""
    words = np.array([value % 2**64 for value in state.totals], np.uint64).view(np.uint32)
    letters = carrier.exchange(words, [NOTHING] * carrier.groups)
    return [Totals(*letter.common.view(np.uint64).tolist()) for letter in letters]
