"""The asynchronous order: each group goes on alone until it is silent, then the groups exchange what changed.

For programs that declare that the order of supersteps does not matter (`Program.monotone`). Chaotic iteration of
monotone functions reaches the same fixed point in every order (Chazan and Miranker, Linear Algebra and its Applications
2, 1969; Bertsekas, "Distributed asynchronous computation of fixed points", Mathematical Programming 27, 1983). Groups
that run to silence between exchanges: Tian et al., "From 'think like a vertex' to 'think like a graph'", PVLDB 7(3),
2013.
"""

from __future__ import annotations

import numpy as np

from ...ids import order
from ..program import Array, Totals
from ..words import json_to_words, words_to_json
from .state import BlockState
from .synchronous import Ending, Limits

FEWEST_BY_PRIORITY = 1024
"""Fewest pending vertices of which only a part sends, by `Program.priority`."""
PART_BY_PRIORITY = 4
"""One in this many pending vertices sends, those with the smallest priorities."""

_NO_TOTALS = Totals({})


def run_to_silence(run: BlockState, limits: Limits) -> tuple[Ending, float]:
    """Run a monotone program from its present state; returns how it ended, and how many vertices changed last.

    `run.rows` are the vertices whose values have not been used by any group. A superstep is one exchange here.
    """
    unsent = run.rows
    while True:
        unsent = _union([unsent, *_run_alone(run, limits)])
        values = run.calls.emit(run.vertices().at(unsent))
        packets = run.gatherer.packets(values, unsent)
        common = json_to_words([len(unsent), any(map(len, packets)), limits.is_late])
        received = run.mirrors.exchange(common, packets)
        run.exchanges += 1
        run.step += 1
        told: list[tuple[int, bool, bool]] = [words_to_json(packet.common) for packet in received]
        moved = sum(changed for changed, _, _ in told)
        if limits.progress is not None:
            limits.progress(run.all_steps, moved)
        if any(late for _, _, late in told) or run.all_steps == limits.most_steps:
            return "stopped", moved
        if not any(sent for _, sent, _ in told):
            return "ended", 0
        nobody = unsent[:0]
        run.apply(*run.gatherer.gather(run.vertices(), values[:0], nobody, received), _NO_TOTALS)
        unsent = run.rows


def _run_alone(run: BlockState, limits: Limits) -> list[Array]:
    """Run until no vertex of the group changes. Returns the vertices that changed, once for each local superstep."""
    changed = []
    while len(run.rows) and not limits.is_late:
        first, later = _by_priority(run)
        vertices = run.vertices()
        values = run.calls.emit(vertices.at(first))
        run.apply(*run.gatherer.gather(vertices, values, first, None), _NO_TOTALS)
        changed.append(run.rows)
        if len(later):
            run.rows = _union([run.rows, later])
    return changed


def _by_priority(run: BlockState) -> tuple[Array, Array]:
    """The pending vertices that send now, and the others; both ascending."""
    pending = run.rows
    if len(pending) < FEWEST_BY_PRIORITY:
        return pending, pending[:0]
    priority = run.calls.priority(run.vertices().at(pending))
    if priority is None:
        return pending, pending[:0]
    at = len(pending) // PART_BY_PRIORITY
    now = priority <= np.partition(priority, at)[at]
    return pending[now], pending[~now]


def _union(rows: list[Array]) -> Array:
    """The distinct rows, ascending."""
    return rows[0] if len(rows) == 1 else order.distinct(np.concatenate(rows))
