"""An engine that runs each task at once, in the calling thread."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, Self, TypeVar

from ...tasks.device import MemorySpace
from ..cluster.execution import Capacity
from ..monitor.events import Stage

T = TypeVar("T")


class SequentialEngine:
    """A `TaskEngine` without a cluster. The future of a task is its result.

    `started` counts the tasks by their names.
    """

    run_id = "sequential"
    partition_workers: list[int] | None = None
    shares_memory = True

    def __init__(self) -> None:
        self.capacity = Capacity(workers=1, threads=1, memory_bytes=0, in_process=True)
        self.started: Counter[str] = Counter()

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Any]:
        """Call `function(*own)` for each `own` of `arguments`."""
        self.started[name] += len(arguments)
        return [function(*own) for own in arguments]

    def wait(self, futures: Sequence[Any], stage: Stage | None = None) -> None:
        """Report finished tasks to `stage`."""
        if stage is not None:
            stage.task_done(len(futures))

    def gather(self, futures: Sequence[Any]) -> list[Any]:
        """The futures, which are the results."""
        return list(futures)

    def peek(
        self,
        futures: Sequence[Any],
        part: Callable[[Any], T],
        at: Sequence[int] | None = None,
        stage: Stage | None = None,
    ) -> list[T]:
        """`part(result)` for each result."""
        self.wait(futures, stage)
        return [part(result) for result in futures]

    def move_to_host(self, futures: Sequence[Any]) -> None:
        """Do nothing: the results stay where they are."""

    def holders(self, futures: Sequence[Any]) -> list[int]:
        """0 for each: all results are in this process."""
        return [0] * len(futures)

    def for_tasks(self, tasks: int) -> Self:
        """The same engine: one task runs at a time."""
        return self

    def bucket_workers(self, buckets: int) -> None:
        """None, as no workers exist."""

    def in_background(self) -> Self:
        """The same engine: a task runs as soon as it is started."""
        return self

    def for_partitions(self, space: MemorySpace = MemorySpace.DEVICE) -> Self:
        """The same engine: arrays stay where the tasks put them."""
        return self
