"""Peeling of shards on GPUs: one shard for each GPU, or several on one.

The kernels make thousands of exchanges without the host; see kernels/cuda/shards/peel.cu. Their messages go through the
transport that `transport` has opened.

The constants MAILBOXES, HOST_MEMORY, NCCL and RELAY are the names of the transports.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ....kernels.gpu_shards import Address, ShardSums
from ....kernels.runtime.sizes import SizedArrays
from ...errors import ClusterLost, InternalError
from ..group_edges import ShardEdges
from ..peeling import Figures

if TYPE_CHECKING:
    from ....kernels.gpu.shards.mail import DirectMail, HostMail, RelayedMail, ShardMailbox
    from ....kernels.gpu.shards.peel import ShardPeeling

    ShardMail: TypeAlias = DirectMail | HostMail | RelayedMail

MAILBOXES: Final = "mailboxes"
"""Kernels write to the memory of each other's GPUs."""
HOST_MEMORY: Final = "host-memory"
"""Kernels write to host memory that all processes map."""
NCCL: Final = "nccl"
"""A thread of each process sends the kernel's messages through NCCL."""
RELAY: Final = "relay"
"""A thread of each process sends the kernel's messages through the group's carrier."""


class ShardTotals(NamedTuple):
    """Values of a shard that must agree, or add up, over all shards at a stop."""

    sent: int
    received: int
    fingerprint: int
    """Modulo 2^64."""
    triangles: int
    """Removed triangles."""
    supports: int
    """Sum of the supports of the owned edges at the start."""
    standing: int
    """Remaining owned edges."""
    remaining: int
    """Sum of the remaining triangles of these edges."""
    left: int
    """Remaining edges of the whole graph."""
    level: int


@dataclass(frozen=True)
class ShardOnGpu(SizedArrays):
    """The state of a shard at the start of a level: at a stop, or at the end."""

    group: int
    groups: int
    level: int
    """Lower bound of λ of every remaining edge."""
    levels: int
    """Levels at which edges were removed."""
    left: int
    """Remaining edges of the whole graph."""
    count: NDArray[np.int32]
    """[edges] half counts with their roles; see kernels/cuda/shards/count.cuh."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] lower bound of λ. The shard owns the edges whose high endpoint is of
    its class.
    """
    high: NDArray[np.int32]
    """[owned edges] upper bound of λ; equal to `low` if λ is known."""
    supports: int
    """Sum of the supports of the owned edges."""
    standing: int
    """Remaining owned edges."""
    remaining: int
    """Sum of the remaining triangles of these edges."""
    exchanges: int
    """Exchanges between all shards, over all parts of a resumed run."""
    rounds: int
    """Exchanges that announced edges to remove."""
    told: int
    """Edges whose removal this shard announced."""
    words: NDArray[np.uint64]
    """`sums` as the kernel stores them."""
    way: str = MAILBOXES
    """The transport of the messages, by its name."""
    why: str = ""
    """Why threads relayed messages although kernels were to send them; empty if there is no such reason."""

    @property
    def sums(self) -> ShardSums:
        """The counters of the kernel, over all parts of a resumed run."""
        return ShardSums.of(self.words)

    @property
    def evaluations(self) -> int:
        """Edges announced by this shard; the sum over all shards is the number of removed edges."""
        return self.told

    @property
    def finished(self) -> bool:
        """Whether λ of every edge is known."""
        return self.left == 0

    @property
    def figures(self) -> Figures:
        """Counters of the peeling."""
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
    def totals(self) -> ShardTotals:
        """The argument of `check_totals`."""
        sums = self.sums
        of_sums = sums.sent, sums.received, sums.fingerprint, sums.triangles
        return ShardTotals(*of_sums, self.supports, self.standing, self.remaining, self.left, self.level)


def open_shard_mailbox(edges: ShardEdges) -> ShardMailbox:
    """Allocate memory of the GPU to which all shards write their messages for this shard."""
    from ....kernels.gpu.shards.mail import ShardMailbox

    return ShardMailbox(edges.groups, edges.edges)


@contextmanager
def direct_mail(
    edges: Sequence[ShardEdges], mailboxes: Sequence[ShardMailbox], addresses: Sequence[Address]
) -> Iterator[list[ShardMail]]:
    """Connect the shards of this process to the mailboxes of all shards.

    `mailboxes` are those of this process, `addresses` those of all. Raises ConnectionError if one cannot be reached.
    """
    from ....kernels.gpu.shards.mail import DirectMail

    mails: list[ShardMail] = []
    try:
        for one, mailbox in zip(edges, mailboxes, strict=True):
            mails.append(DirectMail(one.group, mailbox, addresses))
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
    """Peel the shards of this process, while other processes peel the other shards of the graph.

    `edges` are on this process's GPU; each shard is a group of one class. `mails` connect each shard to all others.
    Starts from the state `before` if it is given. When `seconds` are over in this process, all shards stop after the
    same level. `progress(level, remaining edges)` is called between launches. Raises ClusterLost if another shard
    fails, InternalError for inconsistent counts; `check_totals` checks the results of all shards.
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
                peeling.finish()
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
            raise ClusterLost(f"peeling on GPUs ended: {error}; run again") from error
        raise
    finally:
        for peeling in running:
            peeling.wait()


def check_totals(totals: Sequence[ShardTotals]) -> None:
    """Check the invariants over all shards. Raises InternalError."""
    sums = ShardTotals(*map(sum, zip(*totals, strict=True)))
    if sums.sent != sums.received:
        raise InternalError(f"shards sent {sums.sent} messages, but {sums.received} arrived")
    if sums.fingerprint % 2**64:
        raise InternalError("two shards do not agree on the λ of an edge that both store")
    left, level = totals[0].left, totals[0].level
    if any((own.left, own.level) != (left, level) for own in totals):
        raise InternalError("groups of shards do not agree on the number of remaining edges")
    if 3 * sums.triangles + sums.remaining != sums.supports:
        raise InternalError(
            f"shards removed {sums.triangles} triangles and count {sums.remaining / 3:.15g} more; the supports say "
            f"{sums.supports / 3:.15g}"
        )
    if sums.standing != left:
        raise InternalError(f"shards have {sums.standing:,} remaining edges instead of {left:,}")


def _start(edges: ShardEdges, mail: ShardMail, before: ShardOnGpu | None) -> ShardPeeling:
    from ....kernels.gpu.shards.peel import ShardPeeling

    start: dict[str, Any] = {"support": edges.support}
    if before is not None:
        if (before.group, before.groups, len(before.count)) != (edges.group, edges.groups, len(edges.low)):
            raise InternalError("the state to resume from belongs to other shards")
        start = {"count": before.count, "sums": before.words, "level": before.level, "levels": before.levels}
    return ShardPeeling(edges.low, edges.high, edges.cut.vertices, edges.edges, mail, **start)


def _result(edges: ShardEdges, peeling: ShardPeeling, before: ShardOnGpu | None) -> ShardOnGpu:
    low, high = peeling.intervals()
    sums = peeling.sums
    if sums.faults:
        raise InternalError(f"{sums.faults} edges or messages did not match the rows of shard {edges.group}")
    counted = (0, 0, 0) if before is None else (before.exchanges, before.rounds, before.told)
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
        standing=peeling.remaining_edges,
        remaining=peeling.remaining_triangles,
        exchanges=counted[0] + peeling.exchanges,
        rounds=counted[1] + peeling.rounds,
        told=counted[2] + peeling.edges_sent,
        words=peeling.words,
    )
