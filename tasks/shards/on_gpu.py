"""Peeling shards on GPUs: one shard for each GPU, or several on one. What they tell each other passes between the
running kernels, so the host is not in the loop of rounds; kernels/cuda/shards.cu.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from ...kernels.peers import Address
from ...kernels.shard_sums import ShardSums
from ..errors import ClusterLost, InternalError
from .edges import ShardEdges

if TYPE_CHECKING:
    from ...kernels.gpu.peers import Links
    from ...kernels.gpu.shards import ShardMailbox, ShardPeeling


@dataclass(frozen=True)
class ShardOnGpu(Held):
    """Where one shard stands at the start of a level: the result at the end, or what goes on from there."""

    group: int
    groups: int
    level: int
    """Every edge that is left has at least this λ."""
    levels: int
    """At which edges left."""
    left: int
    """Edges of the whole graph that are left."""
    count: NDArray[np.int32]
    """[edges] halves with their roles; see kernels/cuda/shard_count.cuh."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] the least that λ can be. Owned are the edges whose high end is of the
    shard's class.
    """
    high: NDArray[np.int32]
    """[owned edges] the most that λ can be; the same as `low` where λ is known."""
    supports: int
    """Triangles of the owned edges, added up."""
    exchanges: int
    """Meetings of all shards, of this piece of the run."""
    rounds: int
    """Exchanges that brought edges that leave."""
    words: NDArray[np.uint64]
    """Of `sums`, for the kernel."""
    sums: ShardSums


def open_shard_mailbox(edges: ShardEdges) -> ShardMailbox:
    """Where all shards will write what this one is to know."""
    return kernels.shard_mailbox(edges.low, edges.groups, edges.edges)


def peel_shards_on_gpu(
    edges: Sequence[ShardEdges],
    mailboxes: Sequence[ShardMailbox],
    addresses: Sequence[Address],
    before: Sequence[ShardOnGpu] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[ShardOnGpu]:
    """Peel these shards of a graph in step with its others, which other processes peel at the same time.

    `edges` are on this process's GPU, one group of one class for each shard. `mailboxes` are theirs, `addresses` those
    of all shards. From the start, or from where all were `before`. After `seconds` here all stop, everywhere after the
    same level. `progress(level, edges left)` is called now and then. Raises ClusterLost if another shard's process
    fails, InternalError where a count does not fit; `check_sums` is for the results of all shards.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    links: list[Links] = []
    running: list[ShardPeeling] = []
    try:
        for one, mailbox in zip(edges, mailboxes, strict=True):
            links.append(kernels.link_up(one.low, one.group, mailbox, addresses))
        for i, (one, own) in enumerate(zip(edges, links, strict=True)):
            running.append(_start(one, own, before[i] if before else None))
        while running[0].in_progress:
            late = deadline is not None and time.monotonic() >= deadline
            for peeling in running:
                peeling.launch(late)
            for peeling in running:
                peeling.settle()
            if progress is not None:
                progress(running[0].level, running[0].left)
        for peeling in running if running[0].left else ():
            peeling.gather()
        return [
            _result(one, peeling, before[i] if before else None)
            for i, (one, peeling) in enumerate(zip(edges, running, strict=True))
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


def check_sums(states: Sequence[ShardOnGpu]) -> None:
    """Check what must hold over all shards. Raises InternalError."""
    sums = [state.sums for state in states]
    sent, received = (sum(getattr(one, name) for one in sums) for name in ("sent", "received"))
    if sent != received:
        raise InternalError(f"shards sent {sent} messages, and {received} arrived")
    if sum(one.fingerprint for one in sums) % 2**64:
        raise InternalError("two shards do not agree on the λ of an edge that both store")
    if states[0].left:
        return
    removed, supports = sum(one.triangles for one in sums), sum(state.supports for state in states)
    if 3 * removed != supports:
        raise InternalError(f"shards removed {removed} triangles; the supports say {supports / 3:.15g}")


def _start(edges: ShardEdges, links: Links, before: ShardOnGpu | None) -> ShardPeeling:
    start: dict[str, Any] = {"support": edges.support}
    if before is not None:
        start = {"count": before.count, "sums": before.words, "level": before.level, "levels": before.levels}
    return kernels.shard_peeling(edges.low, edges.high, edges.cut.vertices, edges.edges, links, **start)


def _result(edges: ShardEdges, peeling: ShardPeeling, before: ShardOnGpu | None) -> ShardOnGpu:
    low, high = peeling.intervals()
    sums = peeling.sums
    if sums.faults:
        raise InternalError(f"{sums.faults} edges or messages did not fit what shard {edges.group} stores")
    return ShardOnGpu(
        group=edges.group,
        groups=edges.groups,
        level=peeling.level,
        levels=peeling.levels,
        left=sums.left,
        count=peeling.count,
        low=low,
        high=high,
        supports=peeling.supports if before is None else before.supports,
        exchanges=peeling.exchanges,
        rounds=peeling.rounds,
        words=peeling.words,
        sums=sums,
    )
