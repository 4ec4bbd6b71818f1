"""Kernels for CPUs that are loaded from the cache, or compiled, while rows are read."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING

from ...monitor.events import Events
from ..engine import Engine, Future

if TYPE_CHECKING:
    from ....kernels.runtime.side_by_side import WarmUp

FEWEST_THREADS = 4
"""With fewer threads, reading would take longer by about as much time as the kernels take."""
_STAGES = "number", "triangulate"
"""Stages that wait for kernels, in order."""


class KernelLoading:
    """The kernels of a run in this process that are loaded in the background."""

    def __init__(self) -> None:
        self._pending: dict[str, Future] = {}
        """Tasks by the stage that waits for them."""
        self._reports: list[WarmUp] = []

    @property
    def is_pending(self) -> bool:
        """Whether a stage has to wait for kernels."""
        return bool(self._pending)

    def start(self, engine: Engine, parts: Sequence[str]) -> None:
        """Start to load all `parts`, and load those that the stage `read` calls.

        Parts that were never compiled are compiled by other processes: most in two thirds of them, since the stage
        `number` needs the others sooner.
        """
        from ....kernels.runtime.warm import BY_STAGE, load_parts  # loads Numba

        first, soon = ([part for part in parts if part in BY_STAGE[stage]] for stage in ("read", "number"))
        rest = [part for part in parts if part not in first and part not in soon]
        few = engine.capacity.threads // 3
        shares = (soon, max(2, few)), (rest, max(2, engine.capacity.threads - few))
        tasks = [(own, processes, False) for own, processes in shares]
        self._pending = dict(zip(_STAGES, engine.in_background().map("load", load_parts, tasks), strict=True))
        self._reports += engine.on_every_worker(load_parts, first, 2)

    def finish(self, engine: Engine, events: Events, stage: str) -> None:
        """Wait for the kernels that `stage`, "number" or "triangulate", and the stages before it call."""
        names = [name for name in _STAGES[: _STAGES.index(stage) + 1] if name in self._pending]
        if not names:
            return
        wanted = [self._pending.pop(name) for name in names]
        with nullcontext() if all(task.done() for task in wanted) else events.stage("compile", 0):
            self._reports += engine.gather(wanted)
        if not self._pending:
            events.emit("kernels", compiled=sum(report.compiled for report in self._reports))
