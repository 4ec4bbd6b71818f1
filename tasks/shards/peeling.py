"""Peeling in step: every group runs this loop, and they meet in one exchange a round.

Level-synchronous peeling (Wang and Cheng, PVLDB 2012; PKT, Kabir and Madduri, HPEC 2017) over shards: see
`kernels.cpu.shards`. An exchange brings each group the edges that leave in this round, from all groups, and the
messages about counts that were written after the last one. A level is over when an exchange brings nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.shards import NO_HALF, Cut, Leaving, Messages, ShardGroup, build_rows, pair_halves
from ...kernels.held import Held
from ..errors import InternalError
from .parcels import Carrier, Parcel

NEAR = 4
"""Levels in a window. Fewer make fewer reports and more alarms."""


@dataclass(frozen=True)
class PeeledShards(Held):
    """What one group found."""

    low: NDArray[np.uint32]
    """[edges] the endpoint of lower degree."""
    high: NDArray[np.uint32]
    """[edges] the other endpoint; of the classes of this group."""
    level: NDArray[np.int32]
    """[edges] λ."""
    progress: Progress


@dataclass(frozen=True)
class Progress:
    """How a group's peeling went."""

    exchanges: int
    rounds: int
    """Exchanges that brought edges that leave."""
    levels: int
    """Levels at which edges left."""
    entries: tuple[int, ...]
    """[shards] entries of rows read."""
    triangles: tuple[int, ...]
    """[shards] triangles removed."""
    alarms: int
    reports: int
    grants: int
    edges: int
    """Edges that this group's shards told all others to remove."""


def first_shards(groups: int, shards: int) -> list[int]:
    """[groups + 1] the first shard of each group; groups have shards in runs, as even as can be."""
    return [rank * shards // groups for rank in range(groups + 1)]


def build_group(
    low: NDArray[np.uint32],
    high: NDArray[np.uint32],
    support: NDArray[np.int32],
    vertices: int,
    shards: int,
    carrier: Carrier,
) -> ShardGroup:
    """Build the shards of this group, and tell the others where it has the halves of their edges.

    `low`, `high` [edges] are the edges with an end of the group's classes, sorted by (low, high); others are ignored.
    `support` [edges] is the number of their triangles.
    """
    cut = Cut(vertices, shards)
    starts = first_shards(carrier.groups, shards)
    first, stop = starts[carrier.rank], starts[carrier.rank + 1]
    rows, halves = build_rows(low, high, cut, first, stop - first)
    pairs = pair_halves(low, high, rows, halves)
    spread = np.empty(len(rows.low), np.int32)
    for at in (halves.at_low, halves.at_high):
        here = at != NO_HALF
        spread[at[here]] = support[here]
    group = ShardGroup(rows, pairs, spread)
    with _abandoning(carrier):
        given = carrier.exchange([_packed(group.partners_for(a, b - a)) for a, b in pairwise(starts)])
        for other, parcel in zip(starts, given, strict=False):
            group.link(other, _unpacked(parcel))
    return group


def peel_shards(
    group: ShardGroup, edges: int, carrier: Carrier, near: int = NEAR, told: Callable[[int, int], None] | None = None
) -> PeeledShards:
    """Peel the graph of `edges` edges together with the other groups, which all call this.

    `told(level, edges left)` is called after each level. Raises ClusterLost when another group is lost, InternalError
    when a rule of conservation is violated.
    """
    with _abandoning(carrier):
        return _Peeling(group, edges, carrier, near).run(told)


@contextmanager
def _abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail, too, when this one does."""
    try:
        yield
    except BaseException:
        carrier.abandon()
        raise


class _Peeling:
    def __init__(self, group: ShardGroup, edges: int, carrier: Carrier, near: int) -> None:
        self.group, self.carrier, self.near = group, carrier, near
        self.left = edges
        shards = group.rows.cut.shards
        self.ranges = [(a, b - a) for a, b in pairwise(first_shards(carrier.groups, shards))]
        self.level, self.last = 0, near - 1
        self.exchanges = self.rounds = self.levels = self.own = self.sent = 0

    def run(self, told: Callable[[int, int], None] | None) -> PeeledShards:
        least = self.group.open_level(self.level, self.last)
        fresh = True
        """Whether no edge has left since `least` was found."""
        while self.left:
            leaving, messages, least_of_all, told_by_any = self._exchange(least)
            if len(leaving.low) or told_by_any:
                self._round(leaving, messages)
                self.levels += fresh
                fresh = False
                continue
            if told is not None:
                told(self.level, self.left)
            self._next_level(*least_of_all, fresh)
            least = self.group.open_level(self.level, self.last)
            fresh = True
        return self._end()

    def _next_level(self, keeper: int, split: int, fresh: bool) -> None:
        """Go to the next level at which an edge may leave. `keeper`, `split` are of use only while they are fresh."""
        following = self.level + 1
        if fresh:
            following = max(following, min(keeper, self.last + 1))
            if following > self.last:
                following = max(following, min(keeper, 2 * split))
        self.level = following
        if self.level > self.last:
            self.last = self.level + self.near - 1

    def _exchange(self, least: tuple[int, int]) -> tuple[Leaving, list[Messages], tuple[int, int], bool]:
        """Meet the others; gives all edges that leave, the messages for this group, the least counts of all groups, and
        whether any group has told another something: that also goes for messages that this group does not get.
        """
        leaving = self.group.leaving
        words = np.array([*least, -self.group.told], np.int64)
        self.own += len(leaving.low)
        self.sent += self.group.told
        parcels: list[Parcel] = [
            (words, leaving.low, leaving.high, *_packed(self.group.messages_for(a, n))) for a, n in self.ranges
        ]
        given = self.carrier.exchange(parcels)
        self.exchanges += 1
        union = Leaving(np.concatenate([p[1] for p in given]), np.concatenate([p[2] for p in given]))
        keeper, split, silence = np.min([p[0] for p in given], axis=0).tolist()
        return union, [_unpacked(p[3:]) for p in given], (keeper, split), silence < 0

    def _round(self, leaving: Leaving, messages: Sequence[Messages]) -> None:
        group = self.group
        group.begin_round()
        for (first, _), received in zip(self.ranges, messages, strict=True):
            group.receive(first, received, self.level, self.last)
        group.settle_alarms()
        if len(leaving.low):
            group.remove(leaving, self.level)
            self.left -= len(leaving.low)
            self.rounds += 1
        group.send(self.level, self.last)

    def _end(self) -> PeeledShards:
        """Check what must hold over all groups, and take the answer."""
        group = self.group
        _, triangles, fingerprint = group.counts.sum(axis=0)
        sums = np.array([self.sent, group.received, fingerprint, triangles, group.supports], np.int64)
        given = self.carrier.exchange([(sums,)] * self.carrier.groups)
        sent, received, mismatch, removed, supports = np.sum([parcel[0] for parcel in given], axis=0).tolist()
        if sent != received:
            raise InternalError(f"shards sent {sent} messages, and {received} arrived")
        if mismatch:
            raise InternalError("two shards do not agree on the λ of an edge that both store")
        if 3 * removed != supports:
            raise InternalError(f"shards removed {removed} triangles; the supports say {supports / 3:.15g}")
        low, high, level = group.levels()
        alarms, reports, grants = group.kinds.sum(axis=0).tolist()
        progress = Progress(
            exchanges=self.exchanges,
            rounds=self.rounds,
            levels=self.levels,
            entries=tuple(group.counts[:, 0].tolist()),
            triangles=tuple(group.counts[:, 1].tolist()),
            alarms=alarms,
            reports=reports,
            grants=grants,
            edges=self.own,
        )
        return PeeledShards(low, high, level, progress)


def _packed(messages: Messages) -> Parcel:
    return messages.target, messages.value, messages.start


def _unpacked(parcel: Parcel) -> Messages:
    target, value, start = parcel
    return Messages(target, value, start)
