"""An engine that runs tasks in threads of this process, without a cluster."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from ...kernels.runtime.threads import cores, kernel_threads
from ..cluster.execution import Capacity
from ..stages.sequential import SequentialEngine


class ThreadedEngine(SequentialEngine):
    """A `TaskEngine` whose tasks share the cores of this process. The future of a task is its result."""

    def __init__(self, run_id: str, threads: int | None = None) -> None:
        super().__init__()
        self.run_id = run_id
        self.threads = threads or cores()
        self.capacity = Capacity(workers=1, threads=self.threads, memory_bytes=0, in_process=True)

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Any]:
        """`function(*own)` for each `own` of `arguments`, in as many threads as there are cores."""
        self.started[name] += len(arguments)
        each = max(1, self.threads // max(1, len(arguments)))

        def task(own: Sequence[Any]) -> Any:
            with kernel_threads(each):
                return function(*own)

        if len(arguments) < 2:
            return [task(own) for own in arguments]
        with ThreadPoolExecutor(min(self.threads, len(arguments))) as pool:
            return list(pool.map(task, arguments))
