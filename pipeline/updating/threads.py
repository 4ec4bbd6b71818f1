"""An engine that runs tasks in threads of this process, without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...kernels.runtime.threads import kernel_threads, most_threads
from ..cluster.connecting.local import MOST_TASKS
from ..cluster.execution import Capacity
from ..stages.sequential import SequentialEngine


class ThreadedEngine(SequentialEngine):
    """A `TaskEngine` whose tasks share the cores of this process. The future of a task is its result."""

    def __init__(self, run_id: str, threads: int | None = None) -> None:
        super().__init__()
        self.run_id = run_id
        self.threads = threads or most_threads()
        tasks = threads or min(self.threads, MOST_TASKS)
        self.capacity = Capacity(1, tasks, memory_bytes=0, in_process=True, kernel_threads=self.threads)

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Any]:
        """`function(*own)` for each `own` of `arguments`. Tasks at once share the threads for kernels."""
        self.started[name] += len(arguments)
        at_once = min(self.capacity.threads, max(1, len(arguments)))
        each = max(1, self.threads // at_once)

        def task(own: Sequence[Any]) -> Any:
            with kernel_threads(each):
                return function(*own)

        if len(arguments) < 2:
            return [task(own) for own in arguments]
        with ThreadPoolExecutor(at_once) as pool:
            return list(pool.map(task, arguments))
