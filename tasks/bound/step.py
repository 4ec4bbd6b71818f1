"""Peeling in step: several partitions peeled at once on GPUs that write into each other's memory, round by round.

A partition peels its owned edges by their triangles; a ghost falls when its owner says so. One task holds a partition
from the first level to the last: what Dask would take thousands of exchanges for passes between the running kernels.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from ...kernels.peers import Address
from ..errors import ClusterLost, InternalError, OutOfRoom
from ..subgraph import Subgraph
from .peel import Peeled

if TYPE_CHECKING:
    from ...kernels.gpu.peers import Links, Mailbox, PeerPeeling


MOST_SUBSCRIPTIONS = 2**32 - 1
"""Of one partition: kernels count them in uint32."""


@dataclass(frozen=True)
class Subscriptions(Held):
    """Who else holds each local edge as a ghost."""

    start: NDArray[np.uint32]
    """[local edges + 1] where the subscriptions of each edge start; ghosts have none."""

    entry: NDArray[np.int32]
    """[subscriptions, 2] a partition, and which of the ghosts that it has from here the edge is."""


def subscriptions(subgraph: Subgraph) -> Subscriptions:
    """From subscribers by owned edge to subscriptions by local edge.

    Both sides have what they share in the order of its numbers at the owner, so a place in it names an edge to both.
    Raises OutOfRoom for more than MOST_SUBSCRIPTIONS.
    """
    if len(subgraph.subscriber) > MOST_SUBSCRIPTIONS:
        raise OutOfRoom(
            f"partition {subgraph.partition} has {len(subgraph.subscriber):,} copies of its edges in others, over the "
            f"{MOST_SUBSCRIPTIONS:,} allowed; use bounding.method=band"
        )
    start = np.zeros_like(subgraph.owned, np.uint32, shape=(subgraph.topology.edges + 1,))
    start[1:][subgraph.owned] = np.diff(subgraph.subscriber_offsets)
    entry = np.empty_like(subgraph.owned, shape=(len(subgraph.subscriber), 2))
    entry[:, 0] = subgraph.subscriber
    for q in range(subgraph.partitions):
        mine = np.flatnonzero(subgraph.subscriber == q)
        entry[mine, 1] = np.arange(len(mine), dtype=np.int32, like=entry)
    return Subscriptions(np.cumsum(start, dtype=np.uint32), entry)


def open_mailbox(subgraph: Subgraph) -> Mailbox:
    """Where the other partitions will write."""
    return kernels.mailbox(subgraph.topology.low, subgraph.ghost_offsets.tolist())


def peel_in_step(
    subgraphs: Sequence[Subgraph],
    mailboxes: Sequence[Mailbox],
    addresses: Sequence[Address],
    before: Sequence[Peeled] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[Peeled]:
    """Peel these partitions of a run in step with its others, which other processes peel at the same time.

    `mailboxes` are those of `subgraphs`, `addresses` those of all partitions. From the start, or from where all were
    `before`, which is the same level. After `seconds` here all stop, everywhere after the same level. `progress(level,
    edges left here)` is called now and then. Raises ClusterLost if another partition's process fails.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    links: list[Links] = []
    running: list[PeerPeeling] = []
    try:
        for subgraph, mailbox in zip(subgraphs, mailboxes, strict=True):
            links.append(kernels.link_up(subgraph.topology.low, subgraph.partition, mailbox, addresses))
        for i, (subgraph, own) in enumerate(zip(subgraphs, links, strict=True)):
            running.append(_start(subgraph, own, addresses, before[i] if before else None))
        while running[0].in_progress:
            late = deadline is not None and time.monotonic() >= deadline
            for peeling in running:
                peeling.launch(late)
            for peeling in running:
                peeling.settle()
            if progress is not None:
                progress(running[0].level, sum(peeling.left for peeling in running))
        sent = [earlier.messages for earlier in before] if before else [0] * len(running)
        return [
            Peeled(own.count, own.low, own.level, own.levels, own.left, already + own.sent)
            for own, already in zip(running, sent, strict=True)
        ]
    except BaseException as error:
        for own in links:
            own.abandon()
        if isinstance(error, ConnectionError):
            raise ClusterLost(f"peeling in step ended: {error}; run again") from error
        raise
    finally:
        for peeling in running:
            peeling.wait()
        for own in links:
            own.close()


def _start(subgraph: Subgraph, links: Links, addresses: Sequence[Address], before: Peeled | None) -> PeerPeeling:
    told = subscriptions(subgraph)
    p = subgraph.partition
    sent = kernels.to_host(np.bincount(subgraph.subscriber, minlength=subgraph.partitions)).tolist()
    held = [address.offsets[p + 1] - address.offsets[p] for address in addresses]
    if sent != held:
        raise InternalError(f"partition {p} has subscribers for {sent} edges, which hold {held} of them as ghosts")
    graph = subgraph.topology, subgraph.first_counts() if before is None else before.count, subgraph.ghost
    so_far = () if before is None else (before.low, before.level, before.levels)
    return kernels.peeling_in_step(*graph, told.start, told.entry, links, *so_far)
