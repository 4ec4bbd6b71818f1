"""Level-synchronous peeling over shards: every group runs this loop, with one exchange per round.

The algorithm is that of Wang and Cheng (PVLDB 2012) and PKT (Kabir and Madduri, HPEC 2017); `kernels.cpu.shards` has
its kernels. An exchange gives each group the edges that all groups remove in this round, and the messages about half
counts written since the last exchange. A level ends when an exchange carries neither.

Before the first round, `build_group` builds the shards of a group, and groups exchange the endpoint words of the edges
that two of them store. `peel_groups` peels several groups in one process, each in its own thread.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import (
    NUMPY_ALLOCATOR,
    Allocator,
    RoundTotals,
    ShardGroup,
    build_rows,
    read_endpoint_words,
    write_endpoint_words,
)
from ...kernels.cpu.shards.half_counts import NO_COUNT
from ...kernels.cpu.shards.removal import FINGERPRINT
from ...kernels.runtime.sizes import SizedArrays
from ...kernels.runtime.threads import kernel_threads, layer
from ..errors import ClusterLost, InternalError
from .assignment import first_shards
from .carriers.carrier import Carrier
from .group_edges import ShardEdges


@dataclass(frozen=True)
class Figures(SizedArrays):
    """Counters of a group's peeling, over all its parts if it was stopped and resumed."""

    exchanges: int = 0
    """Exchanges between all groups."""
    rounds: int = 0
    """Exchanges that announced edges to remove."""
    levels: int = 0
    """Levels at which edges were removed."""
    entries: tuple[int, ...] = ()
    """[shards] row entries read."""
    triangles: tuple[int, ...] = ()
    """[shards] triangles removed."""
    alarms: int = 0
    reports: int = 0
    grants: int = 0
    messages: int = 0
    """Alarms, reports and grants sent by this group's shards."""
    edges: int = 0
    """Edges whose removal this group's shards announced."""
    bytes: int = 0
    """Bytes given to the carrier; a packet to all groups counts once for each other group."""


@dataclass(frozen=True)
class ShardState(SizedArrays):
    """State of a group at the start of a level, with no message under way."""

    group: int
    groups: int
    level: int
    """Lower bound of λ of every remaining edge."""
    last: int
    """Last level of the window."""
    left: int
    """Remaining edges of the whole graph."""
    count: NDArray[np.int32]
    """[halves] counts; see `kernels.cpu.shards.half_counts`. `build_rows` numbers halves the same way each time."""
    role: NDArray[np.uint8]
    """[halves] roles of halves."""
    low: NDArray[np.int32]
    """[owned edges, in the order of `ShardEdges`] lower bound of λ. The group owns the edges whose high endpoint is of
    one of its classes.
    """
    high: NDArray[np.int32]
    """[owned edges] upper bound of λ; equal to `low` if λ is known."""
    received: int
    """Messages received; the sum over all groups equals that of `figures.messages`."""
    fingerprint: int
    """Sum of the hashes of removed edges and their levels; the sum over all groups is 0."""
    figures: Figures

    @property
    def levels(self) -> int:
        """Levels at which edges were removed."""
        return self.figures.levels

    @property
    def evaluations(self) -> int:
        """Edges announced by this group; the sum over all groups is the number of removed edges."""
        return self.figures.edges

    @property
    def exchanges(self) -> int:
        """Exchanges between all groups."""
        return self.figures.exchanges

    @property
    def finished(self) -> bool:
        """Whether λ of every edge is known."""
        return self.left == 0


BLOCK = 2**20
"""Maximum edges of each pair of groups in one exchange: 4 MiB per group."""


def build_group(
    edges: ShardEdges, carrier: Carrier, allocator: Allocator = NUMPY_ALLOCATOR, block: int = BLOCK
) -> ShardGroup:
    """Build the shards of this group, and link the halves of its edges with those in other groups."""
    firsts = first_shards(edges.groups, edges.cut.shards)
    first, stop = firsts[edges.group], firsts[edges.group + 1]
    low, high = (np.require(ends, np.uint32, ["C", "W", "A"]) for ends in (edges.low, edges.high))
    support = np.require(edges.support, np.int32, ["C", "W", "A"])
    rows, words = build_rows(low, high, edges.cut, first, stop - first, allocator)
    exchange_endpoint_words(low, high, edges, words, carrier, block)
    return ShardGroup(rows, words, low, high, support, firsts, allocator)


def exchange_endpoint_words(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    edges: ShardEdges,
    words: NDArray[np.uint32],
    carrier: Carrier,
    block: int = BLOCK,
) -> int:
    """Complete `words` [2, edges] with the words of endpoints in other groups, which those groups send.

    All groups call this function. Returns the number of exchanges. Raises InternalError if two groups differ in the
    edges between their classes.
    """
    groups = edges.groups
    if groups == 1:
        return 0
    firsts = first_shards(groups, edges.cut.shards)
    group_of = np.repeat(np.arange(groups), np.diff(firsts))
    fixed = (low, high, np.uint32(edges.cut.vertices), np.uint32(edges.cut.shards), group_of, edges.group)
    block = max(1, min(block, len(low)))
    sent, count = np.empty((groups, block), np.uint32), np.zeros(groups, np.int64)
    write_cursor, read_cursor = np.zeros(groups, np.int64), np.zeros(groups, np.int64)
    exchanges = 0
    while True:
        write_endpoint_words(*fixed, *words, write_cursor, sent, count)
        more = np.array([bool((write_cursor < len(low)).any())], np.uint32)
        packets = carrier.exchange(more, [part[:n] for part, n in zip(sent, count.tolist(), strict=True)])
        exchanges += 1
        own = [packet.own for packet in packets]
        start = np.append(0, np.cumsum([len(part) for part in own]))
        _check_lengths(own, count, edges.group)
        if read_endpoint_words(*fixed, np.concatenate(own), start, read_cursor, *words).any():
            raise InternalError("two groups of shards do not have the same edges between them")
        if not any(packet.common[0] for packet in packets):
            return exchanges


def _check_lengths(own: Sequence[NDArray[np.uint32]], count: NDArray[np.int64], rank: int) -> None:
    for g, (words, expected) in enumerate(zip(own, count.tolist(), strict=True)):
        if len(words) != expected:
            raise InternalError(
                f"group {g} of shards has {len(words)} edges in common with group {rank}, which has {expected}"
            )


WINDOW = 4
"""Levels in a window. Fewer levels make fewer reports and more alarms."""


def peel_shards(
    edges: ShardEdges,
    carrier: Carrier,
    before: ShardState | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    until: int = 0,
    window: int = WINDOW,
    allocator: Allocator = NUMPY_ALLOCATOR,
    block: int = BLOCK,
) -> ShardState:
    """Peel the graph together with the other groups, which all call this with the same `window` and `block`.

    `before` is the state of this group at an earlier stop, for the same graph, groups and shards. When `seconds` are
    over in any group, all groups stop after the same level. They also stop between two levels when at most `until`
    edges of the graph remain; all groups pass the same `until`. `progress(level, remaining edges)` is called before the
    first level, and after each. Rows and other large arrays that are rarely read come from `allocator`. `block` is the
    maximum number of edges between two groups whose endpoint words one exchange carries, at the start and at a stop.
    Raises ClusterLost when another group is lost, InternalError when a rule of conservation is violated or groups
    disagree, ValueError for an edge of 2^28 triangles or more, or for 2^32 halves of edges in a group.
    """
    deadline = None if seconds is None else time.monotonic() + seconds
    with _abandoning(carrier):
        group = build_group(edges, carrier, allocator, block)
        return GroupPeeling(edges, group, carrier, before, window, block, until).run(deadline, progress)


@contextmanager
def _abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail if this one fails."""
    try:
        yield
    except BaseException:
        carrier.abandon()
        raise


class GroupPeeling:
    """The loop of one group whose shards are built; see `peel_shards`."""

    def __init__(
        self,
        edges: ShardEdges,
        group: ShardGroup,
        carrier: Carrier,
        before: ShardState | None = None,
        window: int = WINDOW,
        block: int = BLOCK,
        until: int = 0,
    ) -> None:
        self.edges, self.group, self.carrier, self.window, self.block = edges, group, carrier, window, block
        self.until = until
        self.left, self.level, self.last = edges.edges, 0, window - 1
        self.exchanges = self.rounds = self.levels = self.bytes = 0
        if before is not None:
            self._restore(before)

    def run(self, deadline: float | None, progress: Callable[[int, int], None] | None) -> ShardState:
        """Peel until at most `until` edges remain or, after the `deadline` on the monotonic clock, until the end of a
        level.
        """
        group = self.group
        self._check()
        if progress is not None:
            progress(self.level, self.left)
        late = False
        while self.left > self.until and not late:
            group.open_level(self.level, self.last)
            fresh = True  # no count has changed since the least counts were found
            removed = False  # this level has removed edges
            while True:
                totals = self._exchange(deadline is not None and time.monotonic() >= deadline)
                if not (totals.edges or totals.messages):
                    break
                group.run_round(self.level, self.last)
                fresh = False
                if totals.edges:
                    self.left -= totals.edges
                    self.rounds += 1
                    removed = True
                if not self.left:
                    break
            self.levels += removed
            if progress is not None:
                progress(self.level, self.left)
            late = totals.late
            if self.left and fresh and min(totals.least_keeper, totals.least_split) == NO_COUNT:
                raise InternalError(f"no shard has a count of the {self.left:,} remaining edges")
            self._next_level(totals.least_keeper, totals.least_split, fresh)
        return self._end()

    def _next_level(self, keeper: int, split: int, fresh: bool) -> None:
        """Go to the next level at which an edge may be removed. `keeper` and `split` are valid only if `fresh`."""
        following = self.level + 1
        if fresh:
            following = max(following, min(keeper, self.last + 1))
            if following > self.last:
                following = max(following, min(keeper, 2 * split))
        self.level = following
        if self.level > self.last:
            self.last = self.level + self.window - 1

    def _exchange(self, late: bool) -> RoundTotals:
        """Exchange the packets of a round; returns the totals over all groups."""
        common, own = self.group.write(self.level, self.last, self.left, late)
        packets = self.carrier.exchange(common, own)
        self.exchanges += 1
        self.bytes += 4 * (len(common) * (len(packets) - 1) + int(self.group.packet_words))
        totals = self.group.read([packet.common for packet in packets], [packet.own for packet in packets])
        if totals is None:
            raise InternalError(f"groups of shards disagree at level {self.level}, with {self.left:,} edges remaining")
        return totals

    def _check(self) -> None:
        """Check the invariants over all groups that hold whenever no message is under way."""
        group = self.group
        remaining, owned = group.find_live()
        _, triangles, fingerprint = group.counts.sum(axis=0).tolist()
        sums = np.array(
            [group.messages, group.received, fingerprint, triangles, group.supports, remaining, owned, self.left],
            np.int64,
        )
        packets = self.carrier.exchange(sums.view(np.uint32), [np.empty(0, np.uint32)] * self.carrier.groups)
        self.exchanges += 1
        words = [packet.common.view(np.int64) for packet in packets]
        sent, received, mismatch, removed, supports, remaining, owned, _ = np.sum(words, axis=0).tolist()
        if any(own[-1] != self.left for own in words):
            raise InternalError("groups of shards do not agree on the number of remaining edges")
        if sent != received:
            raise InternalError(f"shards sent {sent} messages, but {received} arrived")
        if mismatch:
            raise InternalError("two shards do not agree on the λ of an edge that both store")
        if 3 * removed + remaining != supports:
            raise InternalError(
                f"shards removed {removed} triangles and count {remaining / 3:.15g} more; the supports say "
                f"{supports / 3:.15g}"
            )
        if owned != self.left:
            raise InternalError(f"shards have {owned:,} remaining edges instead of {self.left:,}")

    def _end(self) -> ShardState:
        """Check the invariants over all groups, and return the state."""
        self._check()
        group, edges = self.group, self.edges
        counts = group.endpoint_counts()
        if self.left:
            self.exchanges += exchange_endpoint_words(group.low, group.high, edges, counts, self.carrier, self.block)
        low, high = group.intervals(counts, self.level)
        del counts
        alarms, reports, grants = group.kinds.sum(axis=0).tolist()
        figures = Figures(
            exchanges=self.exchanges,
            rounds=self.rounds,
            levels=self.levels,
            entries=tuple(group.counts[:, 0].tolist()),
            triangles=tuple(group.counts[:, 1].tolist()),
            alarms=alarms,
            reports=reports,
            grants=grants,
            messages=group.messages,
            edges=group.edges,
            bytes=self.bytes,
        )
        return ShardState(
            group=edges.group,
            groups=edges.groups,
            level=self.level,
            last=self.last,
            left=self.left,
            count=group.count,
            role=group.role,
            low=low,
            high=high,
            received=group.received,
            fingerprint=int(group.counts[:, FINGERPRINT].sum()),
            figures=figures,
        )

    def _restore(self, before: ShardState) -> None:
        """Restore the state of an earlier stop. Raises InternalError for a state of other shards."""
        group, figures = self.group, before.figures
        where = (before.group, before.groups, len(before.count), len(figures.entries))
        if where != (self.edges.group, self.edges.groups, len(group.count), group.rows.shards):
            raise InternalError("the state to resume from belongs to other shards")
        group.count[:], group.role[:] = before.count, before.role
        group.counts[:, 0], group.counts[:, 1] = figures.entries, figures.triangles
        group.counts[0, FINGERPRINT] = before.fingerprint
        group.kinds[0] = figures.alarms, figures.reports, figures.grants
        group.messages, group.received, group.edges = figures.messages, before.received, figures.edges
        self.exchanges, self.rounds, self.levels = figures.exchanges, figures.rounds, figures.levels
        self.bytes = figures.bytes
        self.level, self.last, self.left = before.level, before.last, before.left


T = TypeVar("T")


def peel_groups(
    edges: Sequence[ShardEdges],
    carriers: Sequence[Carrier],
    before: Sequence[ShardState] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    threads: int,
    until: int = 0,
    allocator: Allocator = NUMPY_ALLOCATOR,
) -> list[ShardState]:
    """Peel the groups of one process, which share its `threads`; see `peel_shards`.

    `edges`, `carriers` and `before` are by group of the process. Several groups need a threading layer that runs
    kernels from several threads at once (see `kernels.runtime.threads`). Raises ClusterLost without such a layer;
    otherwise the errors of groups as `results_of`.
    """
    states: Sequence[ShardState | None] = [None] * len(edges) if before is None else before
    if len(edges) == 1:
        return [peel_shards(edges[0], carriers[0], states[0], seconds, progress, until=until, allocator=allocator)]
    if layer() == "workqueue":
        for carrier in carriers:
            carrier.abandon()
        raise ClusterLost(
            f"a worker has {len(edges)} groups of shards, and Numba's threading layer runs one at a time: start more "
            "workers, or install libgomp (libgomp1), and run again"
        )
    share = max(1, threads // len(edges))

    def peel(at: int) -> ShardState:
        with kernel_threads(share):
            reporting = progress if at == 0 else None
            own = edges[at], carriers[at], states[at], seconds, reporting
            return peel_shards(*own, until=until, allocator=allocator)

    with ThreadPoolExecutor(len(edges), "shards") as pool:
        running = [pool.submit(peel, at) for at in range(len(edges))]
    return results_of(running)


def results_of(futures: Sequence[Future[T]]) -> list[T]:
    """The results of the groups of one process.

    If groups failed, raises the first error that is not ClusterLost, as that error is the cause of the others.
    """
    errors = [error for future in futures if (error := future.exception()) is not None]
    for error in errors:
        if not isinstance(error, ClusterLost):
            raise error
    if errors:
        raise errors[0]
    return [future.result() for future in futures]
