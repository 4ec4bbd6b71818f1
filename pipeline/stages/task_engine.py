"""Engines that run the tasks of a stage: their interface, and two that need no cluster.

`SequentialEngine` runs each task at once, in the calling thread. `ThreadedEngine` runs tasks in threads of this
process. The engine of a cluster is `cluster.engine.Engine`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeAlias, TypeVar

from ...kernels.runtime.threads import kernel_threads, most_threads
from ...tasks.device import MemorySpace
from ..cluster.connecting.local import MOST_TASKS
from ..cluster.execution import Capacity
from ..events import Stage

if TYPE_CHECKING:
    from ..cluster.execution import Capacity
    from ..events import Stage


class SequentialEngine:
    """A `TaskEngine` without a cluster. The future of a task is its result.

    `started` counts the tasks by their names.
    """

    run_id = "sequential"
    partition_workers: list[int] | None = None
    results_together = 1
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


T = TypeVar("T")

Future: TypeAlias = Any
"""The result of a task: a Dask future, or the value itself where tasks run in the calling thread."""


class TaskEngine(Protocol):
    """Runs tasks and holds their results. `cluster.engine.Engine` documents each member."""

    @property
    def run_id(self) -> str:
        """Id of the run."""

    @property
    def capacity(self) -> Capacity:
        """Threads and memory of the workers."""

    @property
    def results_together(self) -> int:
        """Most results of one worker from which one task takes parts."""

    @property
    def partition_workers(self) -> list[int] | None:
        """[partitions] index of the worker that holds each; None if the scheduler chooses."""

    @property
    def shares_memory(self) -> bool:
        """Whether all tasks run in this process."""

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Future]:
        """Start one task for each element of `arguments`."""

    def wait(self, futures: Sequence[Future], stage: Stage | None = None) -> None:
        """Wait for tasks and report each to `stage`."""

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks, in order."""

    def peek(
        self,
        futures: Sequence[Future],
        part: Callable[[Any], T],
        at: Sequence[int] | None = None,
        stage: Stage | None = None,
    ) -> list[T]:
        """`part(result)` for each result, in order. The results are not moved, and are reported to `stage`."""

    def move_to_host(self, futures: Sequence[Future]) -> None:
        """Move results from the GPUs' memory to the hosts'. A task that needs one gets it back."""

    def holders(self, futures: Sequence[Future]) -> list[int]:
        """Index of a worker that has each result."""

    def for_tasks(self, tasks: int) -> Self:
        """The engine with each worker's threads shared among `tasks` tasks in all."""

    def bucket_workers(self, buckets: int) -> list[int] | None:
        """The worker for the tasks of each bucket; None where all tasks share memory."""

    def in_background(self) -> Self:
        """The engine for tasks that run when a worker has nothing else to start."""

    def for_partitions(self, space: MemorySpace = MemorySpace.DEVICE) -> Self:
        """The engine for tasks that hold partitions on the device that computes, or buckets in `space`."""


def start_behind(
    engine: TaskEngine,
    name: str,
    function: Callable[..., Any],
    arguments: Sequence[Sequence[Any]],
    at: Sequence[int] | None = None,
) -> list[Future]:
    """Start background tasks as `engine.map` does.

    On GPUs a worker keeps a thread for tasks of the stages: a background task starts only when an earlier one has
    ended. A semaphore would let waiting tasks keep threads, and a resource of Dask would have to be declared by the
    workers of every user.
    """
    engine, capacity = engine.in_background(), engine.capacity
    if not capacity.device_bytes:
        return engine.map(name, function, arguments, at)
    lanes = capacity.background_threads * (1 if at is not None else capacity.workers)
    of_worker: dict[int, list[int]] = {}
    for task in range(len(arguments)):
        of_worker.setdefault(0 if at is None else at[task], []).append(task)
    started: dict[int, Future] = {}
    for first in range(0, max(map(len, of_worker.values()), default=0), lanes):
        wave = {
            task: None if first == 0 else started[own[i - lanes]]
            for own in of_worker.values()
            for i, task in enumerate(own[first : first + lanes], first)
        }
        calls = [(before, function, *arguments[task]) for task, before in wave.items()]
        workers = None if at is None else [at[task] for task in wave]
        started |= zip(wave, engine.map(name, _follow, calls, workers), strict=True)
    return [started[task] for task in range(len(arguments))]


def _follow(before: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """Task: `function(*arguments)`, once the task with the result `before` has ended."""
    return function(*arguments)
