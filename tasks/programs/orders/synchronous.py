"""The synchronous order: all groups run a superstep, then exchange.

Bulk-synchronous (Valiant, CACM 33(8), 1990; Malewicz et al., "Pregel", SIGMOD 2010). One exchange per superstep sends
values of vertices to the groups that have edges from them. All values for a vertex are combined in one group, in the
order of their sources, so results are bitwise equal for every partitioning.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias

from ..program import Totals
from ..totals import Part, add_parts, parts_of
from ..words import json_to_words, words_to_json
from .state import BlockState
from .windows import open_windows

Ending: TypeAlias = Literal["ended", "stopped", "switched"]
"""The program ended by itself; a limit stopped it; or it continues in the asynchronous order."""


_Told: TypeAlias = tuple[Part, dict[str, Part], bool, int, int, float | None]
"""What a group tells all groups: how much its vertices changed, its shares of totals, whether its time has passed, the
entries that it has read and would read in the other order, how many vertices send, and the least priority that waits.
"""


@dataclass(frozen=True)
class Limits:
    """What stops all groups after the same superstep."""

    most_steps: int | None = None
    stop: float | None = None
    """Time on the monotonic clock."""
    progress: Callable[[int, float], None] | None = None
    """Called with the number of supersteps and the total change after each superstep."""
    exchange_entries: float | None = None
    """The cost of an exchange, as the number of entries that a group reads in its time; infinite switches after the
    first superstep, and None never.
    """

    @property
    def is_late(self) -> bool:
        """Whether the time has passed."""
        return self.stop is not None and time.monotonic() >= self.stop


def run_in_step(run: BlockState, limits: Limits) -> tuple[Ending, float]:
    """Run supersteps; returns how they ended, and the total change in the last one.

    With `exchange_entries`, the groups switch to the asynchronous order once their exchanges have cost more than the
    entries that they have read, and another reading of the largest block: what the other order may read in addition.
    All groups decide by the same counts, so a run is repeatable.
    """
    program, most_entries, windows = run.program, 0, open_windows(run, run.program)
    while True:
        cost = None if run.all_steps == limits.most_steps else limits.exchange_entries
        if cost is not None and run.exchanges * cost > most_entries > 0:
            if windows is not None:
                run.rows = windows.release()
            return "switched", 0
        if windows is not None:
            windows.admit()
        vertices = run.vertices()
        values = run.emit(vertices)
        sums = run.calls.totals(vertices)
        change, *shares = parts_of([run.moved if windows is None else windows.counts, *sums.values()])
        parts = dict(zip(sums, shares, strict=True))
        least = None if windows is None else windows.least
        common = json_to_words([change, parts, limits.is_late, run.entries + len(run.block), len(run.rows), least])
        packets = run.mirrors.exchange(common, run.gatherer.packets(values, run.rows))
        run.exchanges += 1
        received: list[_Told] = [words_to_json(packet.common) for packet in packets]
        moved = add_parts([part for part, *_ in received])
        most_entries = max(entries for _, _, _, entries, _, _ in received)
        if run.step and limits.progress is not None:
            limits.progress(run.all_steps, moved)
        if run.step == program.steps or _has_ended(run, moved):
            return "ended", moved
        if run.all_steps == limits.most_steps or any(late for _, _, late, *_ in received):
            if windows is not None:
                run.rows = windows.release()
            return "stopped", moved
        if windows is not None and not any(acting for *_, acting, _ in received):
            windows.open(min(least for *_, least in received if least is not None))
            continue
        totals = Totals({name: add_parts([part[name] for _, part, *_ in received]) for name in parts})
        run.apply(*run.gatherer.gather(vertices, values, run.rows, packets), totals)
        run.step += 1


def _has_ended(run: BlockState, moved: float) -> bool:
    if run.program.senders == "changed":
        return moved == 0
    return run.step > 0 and run.calls.converged(run.vertices(), moved)
