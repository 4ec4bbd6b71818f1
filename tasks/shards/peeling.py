"""Peeling in step: every group runs this loop, and they meet in one exchange a round.

Level-synchronous peeling (Wang and Cheng, PVLDB 2012; PKT, Kabir and Madduri, HPEC 2017) over shards: see
`kernels.cpu.shards`. An exchange brings each group the edges that leave in this round, from all groups, and the
messages about counts that were written after the last one. A level is over when an exchange brings nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np

from ...kernels.cpu.shards import MEMORY, Heard, Room, ShardGroup
from ...kernels.cpu.shards.halves import NEVER
from ...kernels.cpu.shards.removal import FINGERPRINT
from ..errors import InternalError
from .building import BLOCK, build_group, swap_sides
from .carrier import Carrier
from .edges import ShardEdges
from .state import Figures, ShardState

NEAR = 4
"""Levels in a window. Fewer make fewer reports and more alarms."""


def peel_shards(
    edges: ShardEdges,
    carrier: Carrier,
    before: ShardState | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    near: int = NEAR,
    room: Room = MEMORY,
    block: int = BLOCK,
) -> ShardState:
    """Peel the graph together with the other groups, which all call this with the same `near` and `block`.

    `before` is the state of this group at an earlier stop of the same graph, with the same groups and shards. After
    `seconds` at any group all stop after the same level. `progress(level, edges left)` is called after each level.
    Rows and other arrays that are rarely touched lie in `room`; `block` is the number of edges that two groups meet
    about at once, at the start and at a stop. Raises ClusterLost when another group is lost, InternalError when a
    rule of conservation is violated or groups disagree, ValueError for an edge of 2^29 triangles or more, or for 2^32
    halves of edges in a group.
    """
    stop = None if seconds is None else time.monotonic() + seconds
    with _abandoning(carrier):
        group = build_group(edges, carrier, room, block)
        return Peeling(edges, group, carrier, before, near, block).run(stop, progress)


@contextmanager
def _abandoning(carrier: Carrier) -> Iterator[None]:
    """Make the other groups fail, too, when this one does."""
    try:
        yield
    except BaseException:
        carrier.abandon()
        raise


class Peeling:
    """The loop of one group, whose shards are built; for `peel_shards`."""

    def __init__(
        self,
        edges: ShardEdges,
        group: ShardGroup,
        carrier: Carrier,
        before: ShardState | None = None,
        near: int = NEAR,
        block: int = BLOCK,
    ) -> None:
        self.edges, self.group, self.carrier, self.near, self.block = edges, group, carrier, near, block
        self.left, self.level, self.last = edges.edges, 0, near - 1
        self.exchanges = self.rounds = self.levels = self.bytes = 0
        if before is not None:
            self._restore(before)

    def run(self, stop: float | None, progress: Callable[[int, int], None] | None) -> ShardState:
        """Peel until nothing is left or, from the time `stop` on, until a level is over."""
        group = self.group
        self._check()
        late = False
        while self.left and not late:
            group.open_level(self.level, self.last)
            fresh, falling = True, False
            # Whether no count has changed since the least ones were found; whether edges have left.
            while True:
                heard = self._exchange(stop is not None and time.monotonic() >= stop)
                if not (heard.edges or heard.told):
                    break
                group.play(self.level, self.last)
                fresh = False
                if heard.edges:
                    self.left -= heard.edges
                    self.rounds += 1
                    falling = True
                if not self.left:
                    break
            self.levels += falling
            if progress is not None:
                progress(self.level, self.left)
            late = heard.late
            if self.left and fresh and min(heard.keeper, heard.split) == NEVER:
                raise InternalError(f"no shard has the count of the {self.left:,} edges that are left")
            self._next_level(heard.keeper, heard.split, fresh)
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

    def _exchange(self, late: bool) -> Heard:
        """Meet the others; gives what all have told."""
        common, own = self.group.write(self.level, self.last, self.left, late)
        letters = self.carrier.exchange(common, own)
        self.exchanges += 1
        self.bytes += 4 * (len(common) * (len(letters) - 1) + int(self.group.letter_words))
        heard = self.group.read([letter.common for letter in letters], [letter.own for letter in letters])
        if heard is None:
            raise InternalError(f"groups of shards disagree at level {self.level}, with {self.left:,} edges left")
        return heard

    def _check(self) -> None:
        """Check what must hold over all groups whenever nothing is on its way."""
        group = self.group
        remaining, owned = group.find_live()
        _, triangles, fingerprint = group.counts.sum(axis=0).tolist()
        sums = np.array(
            [group.messages, group.received, fingerprint, triangles, group.supports, remaining, owned, self.left],
            np.int64,
        )
        letters = self.carrier.exchange(sums.view(np.uint32), [np.empty(0, np.uint32)] * self.carrier.groups)
        self.exchanges += 1
        told = [letter.common.view(np.int64) for letter in letters]
        sent, received, mismatch, removed, supports, remaining, owned, _ = np.sum(told, axis=0).tolist()
        if any(words[-1] != self.left for words in told):
            raise InternalError("groups of shards do not agree on how many edges are left")
        if sent != received:
            raise InternalError(f"shards sent {sent} messages, and {received} arrived")
        if mismatch:
            raise InternalError("two shards do not agree on the λ of an edge that both store")
        if 3 * removed + remaining != supports:
            raise InternalError(
                f"shards removed {removed} triangles and count {remaining / 3:.15g} more; the supports say "
                f"{supports / 3:.15g}"
            )
        if owned != self.left:
            raise InternalError(f"shards have {owned:,} edges left instead of {self.left:,}")

    def _end(self) -> ShardState:
        """Check what must hold over all groups, and take the state."""
        self._check()
        group, edges = self.group, self.edges
        sides = group.sides()
        if self.left:
            self.exchanges += swap_sides(group.low, group.high, edges, sides, self.carrier, self.block)
        low, high = group.certified(sides, self.level)
        del sides
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
        """Go on where a run has stopped. Raises InternalError for a state of other shards."""
        group, figures = self.group, before.figures
        where = (before.group, before.groups, len(before.count), len(figures.entries))
        if where != (self.edges.group, self.edges.groups, len(group.count), group.rows.shards):
            raise InternalError("the state to go on from is that of other shards")
        group.count[:], group.role[:] = before.count, before.role
        group.counts[:, 0], group.counts[:, 1] = figures.entries, figures.triangles
        group.counts[0, FINGERPRINT] = before.fingerprint
        group.kinds[0] = figures.alarms, figures.reports, figures.grants
        group.messages, group.received, group.edges = figures.messages, before.received, figures.edges
        self.exchanges, self.rounds, self.levels = figures.exchanges, figures.rounds, figures.levels
        self.bytes = figures.bytes
        self.level, self.last, self.left = before.level, before.last, before.left
