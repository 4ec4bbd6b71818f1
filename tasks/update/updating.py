"""λ and the order of peeling after a batch of insertions and deletions, and an estimate of its work."""

from __future__ import annotations

from dataclasses import dataclass
from math import log

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.cpu.update import (
    Descent,
    Replayed,
    Union,
    least_of_triangles,
    leave_out,
    level_ends,
    merge,
    removed_triangles,
    replay,
)
from ...kernels.graph import Adjacency, LongArray, Topology
from ...kernels.runtime.sizes import SizedArrays
from .order import Order
from .whole import peel_rest, work_of_rest

MOST = 2**62
"""Work without a budget."""
REPLAYED = 4
"""Work of looking at a triangle in a replay. Elsewhere it is 1. Two threads take 50 to 150 ns for a triangle in a
replay, and 15 to 50 ns elsewhere (cnr-2000, uk-2007-05_100000, actor-collaboration).
"""
REST = 64
"""When a replay of insertions gives way to peeling. In a replay an edge *stands* if it was added, or does not fall at
its old level. If the triangles of the edges that begin to stand at one level exceed 1 / REST of the work of peeling all
remaining edges, these are peeled. With 4, 8, 16, 32 and 64, finding λ after a change of 1 % of cnr-2000 took 1.13,
0.93, 0.87, 0.61 to 0.86 and 0.79 of the time that a run takes for it.
"""
MOST_TIME = 2**31 - 2
"""Times are renumbered without gaps before an update could exceed this."""
GROWTH = 4
"""Edges are removed in steps. After a step GROWTH times as many edges are removed as before it."""
LEAST_STEP = 64
"""Fewest edges of a step, if there are several. With 256, more work is done before the first growth is known: 92
instead of 41 M triangles for vertices of actor-collaboration, 28 instead of 9 M for edges of uk-2007-05_100000.
"""


class OverBudget(Exception):
    """An update would take more work than allowed. The full computation takes over."""

    def __init__(self, triangles: int, work: int, is_expected: bool = False, has_room: bool = True) -> None:
        super().__init__(f"stopped after {triangles:,} triangles")
        self.triangles = triangles
        """Triangles looked at before the update stopped."""
        self.work = work
        """Work of the update until it stopped, or the expected work of the whole update if `is_expected`."""
        self.is_expected = is_expected
        """Whether `work` is an estimate of all work, from the changes that were made so far."""
        self.has_room = has_room
        """False if the update stopped because it would take too much memory, whatever its work."""


@dataclass(frozen=True)
class Updated(SizedArrays):
    """The outcome of an update. Arrays have one entry for each edge after it."""

    edges: Topology
    """The edges after the batch, sorted by (low, high)."""

    order: Order
    """λ and the order of peeling of these edges."""

    origin: NDArray[np.int32]
    """[edges] the edge's number before the batch; -1 for an added edge."""

    changed: NDArray[np.bool_]
    """[edges] true where λ changed, and for added edges."""

    support_change: NDArray[np.int32]
    """[edges] the number of triangles gained less those lost; all triangles of an added edge."""

    triangles: int
    """Triangles looked at."""

    work: int
    """Triangles looked at, where each one of the replay counts REPLAYED times."""

    peeled_from: int | None
    """The level from which on the remaining edges were peeled; None if they were not."""
    peeled: int
    """Number of edges that were peeled."""


def update_order(
    edges: Topology,
    order: Order,
    removed: NDArray[np.bool_],
    added: Topology,
    most_work: int | None = None,
    in_one_thread: bool = True,
    most_listed: int | None = None,
    peels_rest: bool = False,
) -> Updated:
    """Remove the edges whose `removed` [edges] is true, and add others.

    `edges` and `added` are simple edges, low < high, sorted by (low, high); vertices are int32 numbers in any numbering
    that both share. No added edge may be among `edges`, even if it is removed. The number of vertices of `added` may be
    larger. Without `in_one_thread` all threads do small steps, too: the outcome is the same. Raises OverBudget if the
    work would be more than `most_work`, or insertions need lists of more than `most_listed` entries of 12 bytes. With
    `peels_rest`, if insertions exceed these limits at some level, the update peels all remaining edges instead. It also
    does so at a level at which too many edges begin to stand (see REST).
    """
    most = MOST if most_work is None else most_work
    ends = level_ends(order.lam, order.time)
    # An edge may drop to a level, and fall at it, before others of the level or after them.
    if ends.max(initial=0) + 3 * edges.edges + 2 * added.edges > MOST_TIME:
        order = order.with_dense_times()
        ends = level_ends(order.lam, order.time)
    union = merge(edges, (order.lam, order.time, order.count, order.remainder), removed, added)
    rows = kernels.adjacency(union.edges)
    looked, replayed = 0, Replayed(0)
    if len(union.removed):
        looked = _remove(union, rows, ends, most, in_one_thread)
    if added.edges:
        listed = MOST if most_listed is None else most_listed
        at = work_of_rest(order) // REST if peels_rest else np.zeros(0, np.int64)
        replayed = replay(union, rows, ends, (most - looked) // REPLAYED, listed, at, in_one_thread)
    del rows  # what follows needs their memory
    level, peeled = replayed.stopped_at, 0
    if level is not None:
        if not peels_rest or level < 0:
            raise _over_budget(looked, replayed)
        peeled = peel_rest(union, level)
    after, values, origin, changed, change = leave_out(union, order.lam)
    triangles, work = looked + replayed.triangles, looked + REPLAYED * replayed.triangles
    return Updated(after, Order(*values), origin, changed, change, triangles, work, level, peeled)


def _over_budget(looked: int, replayed: Replayed) -> OverBudget:
    """The error for a replay that stopped, after deletions in which `looked` triangles were looked at."""
    work = looked + REPLAYED * (replayed.expected or replayed.triangles)
    return OverBudget(looked + replayed.triangles, work, replayed.expected > 0, replayed.has_room)


def _remove(union: Union, rows: Adjacency, ends: LongArray, most: int, in_one_thread: bool) -> int:
    """Remove edges from the order, in steps. Returns the triangles looked at.

    Raises OverBudget if the work is over `most`, and as soon as the growth from step to step tells that it will be; see
    `_growth_to_come`. For this an inserted edge is expected to be as much work as a removed one. It was 1.8 to 3.8
    times as much where deletions looked at over a fifth of all triangles (cnr-2000, actor-collaboration).
    """
    removed = union.removed
    triples, found = removed_triangles(union.edges, rows, union.mark, removed)
    _within(most, found)
    looked = 0
    descent = Descent(union, rows, ends)
    steps = _steps(removed, triples, union.edges.edges)
    for step, (own, destroyed) in enumerate(steps):
        before = looked
        looked += descent.remove(own, destroyed, most - found - looked, in_one_thread)
        _within(most, found + looked)
        if step:
            growth = _growth_to_come(looked / max(before, 1), len(steps) - 1 - step)
            expected = found + round(looked * growth * (1 + len(union.added) / len(removed)))
            if expected > most:
                raise OverBudget(found + looked, expected, True)
    return found + looked


def _growth_to_come(growth: float, steps: int) -> float:
    """The expected growth of the work over the next `steps` steps, as a factor, if the last step multiplied it by
    `growth`.

    The next step is expected to multiply the work by `growth` as well, and each later step by the square root of the
    factor of the step before: the first removed edges already lower the levels of dense groups, so the work grows less
    and less. In batches of 1 % the factor was 3.9 where 13 was expected after 41 M triangles (vertices of
    actor-collaboration), 3.3 for 5.4 after 21 M (vertices of uk-2007-05_100000), 5.8 for 3.2 (edges of
    uk-2007-05_100000), and 60 for 11 (edges of actor-collaboration).
    """
    return float(min(growth, GROWTH) ** (2 - 2 * 0.5**steps))


def _steps(
    removed: NDArray[np.int32], triples: NDArray[np.int32], edges: int
) -> list[tuple[NDArray[np.int32], NDArray[np.int32]]]:
    """The removed edges of each step, and the triangles that it destroys."""
    strides = [1]
    while len(removed) >= LEAST_STEP * GROWTH * strides[-1]:
        strides.append(GROWTH * strides[-1])
    if len(strides) == 1:
        return [(removed, triples)]
    step_of = np.empty(len(removed), np.uint8)
    for step, stride in reversed(list(enumerate(reversed(strides)))):
        step_of[::stride] = step
    step_of_edge = np.full(edges, len(strides), np.uint8)
    step_of_edge[removed] = step_of
    destroyed = least_of_triangles(triples, step_of_edge)
    steps = len(strides)
    return list(zip(_by_step(removed, step_of, steps), _by_step(triples, destroyed, steps), strict=True))


def _by_step(rows: NDArray[np.int32], step: NDArray[np.uint8], steps: int) -> list[NDArray[np.int32]]:
    """[steps] the rows of each step, in their order in `rows`."""
    order = np.argsort(step, kind="stable")
    return np.split(rows[order], np.cumsum(np.bincount(step, minlength=steps))[:-1])


def _within(most: int, looked: int) -> None:
    """Raises OverBudget if more than `most` triangles were looked at."""
    if looked > most:
        raise OverBudget(looked, looked)


SHARES = (1 / 32, 1 / 8)
"""Shares of the changed edges in the two samples. The smaller one is part of the larger one."""
FEWEST = 32
"""If there are at most this many changed edges, all are replayed."""


@dataclass(frozen=True)
class WorkEstimate:
    """The work of an update as expected from samples of its changed edges."""

    work: int
    """Work that the update is expected to take, as in `Updated`."""
    sampled: int
    """Changed edges of the largest sample that was replayed."""
    is_over: bool = False
    """Whether a sample alone took so much work that it was stopped. The whole update then takes more than `work`."""


def estimate_work(
    edges: Topology, order: Order, removed: NDArray[np.bool_], added: Topology, most_work: int
) -> WorkEstimate:
    """Estimate the work of `update_order` with the same arguments.

    The work is assumed to grow with a power of the number of changed edges, which the two samples give. The power is 1
    for edges that are far from each other, and 0 if a few edges disturb as much as all do, as when a large star is
    removed; otherwise it lies between. A sample stops at `most_work`, and the small sample at half of that, or once its
    first edges tell that it will take more. The same changes give the same estimate.
    """
    lost = np.flatnonzero(removed)
    drawn = np.random.default_rng(0).random(len(lost) + added.edges)
    found: list[tuple[int, int]] = []
    samples = [(1.0, most_work)]
    if len(drawn) > FEWEST:
        samples = [(SHARES[0], most_work // 2), (SHARES[1], most_work)]
    for share, most in samples:
        chosen = drawn < share
        size = int(np.count_nonzero(chosen))
        if not size:
            continue
        gone = np.zeros(edges.edges, np.bool_)
        gone[lost[chosen[: len(lost)]]] = True
        come = chosen[len(lost) :]
        own = Topology(added.low[come], added.high[come], added.vertices)
        try:
            found.append((size, update_order(edges, order, gone, own, most).work))
        except OverBudget as over:
            return WorkEstimate(over.work, size, True)
    if not found:
        return WorkEstimate(0, 0)
    (less, low), (more, high) = found[0], found[-1]
    power = min(max(log(max(high, 1) / max(low, 1)) / log(more / less), 0), 1) if more > less else 1
    return WorkEstimate(round(high * (len(drawn) / more) ** power), more)
