"""Peeling shards on GPUs: one shard for each GPU, or several on one. Their kernels run through thousands of meetings
without the host; kernels/cuda/shards.cu. What they tell each other goes as their mail says: see `gpu_groups`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.held import Held
from ...kernels.peers import Address
from ...kernels.shard_sums import ShardSums
from ..errors import ClusterLost, InternalError
from ..messages import Bundle, bundle
from .edges import ShardEdges
from .mail_ways import MAILBOXES
from .state import Figures

if TYPE_CHECKING:
    from ...kernels.gpu.host_mail import HostMail
    from ...kernels.gpu.shard_mail import DirectMail, RelayedMail, ShardMailbox
    from ...kernels.gpu.shards import ShardPeeling

    ShardMail: TypeAlias = DirectMail | HostMail | RelayedMail


class Totals(NamedTuple):
    """What must agree over all shards at a stop."""

    sent: int
    received: int
    fingerprint: int
    """Modulo 2^64."""
    triangles: int
    """That were removed."""
    supports: int
    """Triangles of the owned edges at the start, added up."""
    standing: int
    """Owned edges that are left."""
    remaining: int
    """Triangles that these have left, added up."""
    left: int
    """Edges of the whole graph that are left."""
    level: int


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
    standing: int
    """Owned edges that are left."""
    remaining: int
    """Triangles that these have left, added up."""
    exchanges: int
    """Meetings of all shards, stops included."""
    rounds: int
    """Exchanges that brought edges that leave."""
    told: int
    """Edges that this shard told all others to remove."""
    words: NDArray[np.uint64]
    """Of `sums`, for the kernel."""
    way: str = MAILBOXES
    """Of the shards' mail: one of the names of `mail_ways`."""
    why: str = ""
    """Threads carried it and kernels did not; empty where nobody asked for kernels, or they did."""

    def kept(self, edges: ShardEdges, mail: Mapping[int, Any]) -> ShardOnGpu:
        """What a checkpoint keeps: all."""
        return self

    def resumed(self, edges: ShardEdges) -> tuple[ShardOnGpu, Bundle[Any]]:
        """The state, and no mail."""
        return self, bundle(self.group, {})

    @property
    def sums(self) -> ShardSums:
        """What was counted, stops included."""
        return ShardSums.of(self.words)

    @property
    def evaluations(self) -> int:
        """Edges that this shard removed first: over all shards, those that left."""
        return self.told

    @property
    def finished(self) -> bool:
        """Whether λ of every edge is known."""
        return self.left == 0

    @property
    def figures(self) -> Figures:
        """How the peeling went."""
        sums = self.sums
        return Figures(
            exchanges=self.exchanges,
            rounds=self.rounds,
            levels=self.levels,
            entries=(sums.entries,),
            triangles=(sums.triangles,),
            alarms=sums.alarms,
            reports=sums.reports,
            grants=sums.grants,
            messages=sums.sent,
            edges=self.told,
            bytes=8 * self.told * (self.groups - 1) + 16 * sums.sent,
        )

    @property
    def totals(self) -> Totals:
        """What `check_totals` takes."""
        sums = self.sums
        of_sums = sums.sent, sums.received, sums.fingerprint, sums.triangles
        return Totals(*of_sums, self.supports, self.standing, self.remaining, self.left, self.level)


def open_shard_mailbox(edges: ShardEdges) -> ShardMailbox:
    """Memory of the GPU where all shards will write what this one is to know."""
    return kernels.shard_mailbox(edges.low, edges.groups, edges.edges)


@contextmanager
def direct_mail(
    edges: Sequence[ShardEdges], mailboxes: Sequence[ShardMailbox], addresses: Sequence[Address]
) -> Iterator[list[ShardMail]]:
    """Mail of these shards, which write into all mailboxes, `mailboxes` being theirs and `addresses` those of all.

    Raises ConnectionError if one cannot be reached.
    """
    mails: list[ShardMail] = []
    try:
        for one, mailbox in zip(edges, mailboxes, strict=True):
            mails.append(kernels.direct_mail(one.low, one.group, mailbox, addresses))
        yield mails
    finally:
        for mail in mails:
            mail.close()


def peel_shards_on_gpu(
    edges: Sequence[ShardEdges],
    mails: Sequence[ShardMail],
    before: Sequence[ShardOnGpu] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> list[ShardOnGpu]:
    """Peel these shards of a graph in step with its others, which other processes peel at the same time.

    `edges` are on this process's GPU, one group of one class for each shard, and `mails` the way from each to all
    others. From the start, or from where all were `before`. After `seconds` here all stop, everywhere after the same
    level. `progress(level, edges left)` is called now and then. Raises ClusterLost if another shard fails,
    InternalError where a count does not fit; `check_totals` is for the results of all shards.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    running: list[ShardPeeling] = []
    try:
        for i, (one, mail) in enumerate(zip(edges, mails, strict=True)):
            running.append(_start(one, mail, before[i] if before else None))
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
        for mail in mails:
            mail.abandon()
        if isinstance(error, ConnectionError):
            raise ClusterLost(f"peeling in step ended: {error}; run again") from error
        raise
    finally:
        for peeling in running:
            peeling.wait()


def check_totals(totals: Sequence[Totals]) -> None:
    """Check what must hold over all shards. Raises InternalError."""
    sums = Totals(*map(sum, zip(*totals, strict=True)))
    if sums.sent != sums.received:
        raise InternalError(f"shards sent {sums.sent} messages, and {sums.received} arrived")
    if sums.fingerprint % 2**64:
        raise InternalError("two shards do not agree on the λ of an edge that both store")
    left, level = totals[0].left, totals[0].level
    if any((own.left, own.level) != (left, level) for own in totals):
        raise InternalError("groups of shards do not agree on how many edges are left")
    if 3 * sums.triangles + sums.remaining != sums.supports:
        raise InternalError(
            f"shards removed {sums.triangles} triangles and count {sums.remaining / 3:.15g} more; the supports say "
            f"{sums.supports / 3:.15g}"
        )
    if sums.standing != left:
        raise InternalError(f"shards have {sums.standing:,} edges left instead of {left:,}")


def _start(edges: ShardEdges, mail: ShardMail, before: ShardOnGpu | None) -> ShardPeeling:
    start: dict[str, Any] = {"support": edges.support}
    if before is not None:
        if (before.group, before.groups, len(before.count)) != (edges.group, edges.groups, len(edges.low)):
            raise InternalError("the state to go on from is that of other shards")
        start = {"count": before.count, "sums": before.words, "level": before.level, "levels": before.levels}
    return kernels.shard_peeling(edges.low, edges.high, edges.cut.vertices, edges.edges, mail, **start)


def _result(edges: ShardEdges, peeling: ShardPeeling, before: ShardOnGpu | None) -> ShardOnGpu:
    low, high = peeling.intervals()
    sums = peeling.sums
    if sums.faults:
        raise InternalError(f"{sums.faults} edges or messages did not fit what shard {edges.group} stores")
    earlier = (0, 0, 0) if before is None else (before.exchanges, before.rounds, before.told)
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
        standing=peeling.standing,
        remaining=peeling.remaining,
        exchanges=earlier[0] + peeling.exchanges,
        rounds=earlier[1] + peeling.rounds,
        told=earlier[2] + peeling.told,
        words=peeling.words,
    )
