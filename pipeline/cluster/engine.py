"""Runs the tasks of a run on a Dask cluster, as its `Execution` says."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Self, TypeVar

from dask.utils import key_split
from distributed import Client, as_completed, fire_and_forget

from ...tasks.device import MemorySpace
from ...tasks.errors import ClusterLost, StateLost
from .execution import GPU as GPU
from .execution import Capacity as Capacity
from .execution import Execution, together
from .session import Future as Future
from .session import Session
from .task_calls import FileResults, ResultKey, TaskCall, held_or_made
from .versions import installed_version
from .watchdog import workers_of
from .worker_lock import WorkerLock
from .workers.spill import mapped

if TYPE_CHECKING:
    from ..events import Stage

_NOTICING_SECONDS = 30
"""How long to wait for the other tasks of a gang to end, once the first has failed."""

T = TypeVar("T")


@dataclass(frozen=True)
class Engine:
    """Runs tasks of a session. Functions and arguments of tasks must be picklable."""

    session: Session
    execution: Execution
    _files: FileResults | None
    _kernel_threads: int = 1
    _partitions: bool = False
    """Whether its tasks hold partitions."""
    _background: bool = False
    """Whether its tasks start after all others, and do not wait for the GPU at their end."""

    @classmethod
    def set_up(cls, session: Session, execution: Execution) -> Self:
        """An engine, once the workers are set up as the execution says.

        Raises ClusterLost if workers are lost again and again.
        """
        if execution.capacity.device_bytes:
            session.send_between_gpus()
        files = FileResults(session.keep_results_in_files(execution)) if execution.results_in_files else None
        return cls(session, execution, files)

    @classmethod
    def connect(
        cls, client: Client, run_id: str, device: str = "cpu", waiting_seconds: float = 300, **changes: Any
    ) -> Self:
        """An engine in a session of its own, with `changes` of its execution. Raises as `Session` and its methods."""
        session = Session(client, run_id, waiting_seconds=waiting_seconds)
        return cls.set_up(session, replace(session.execution_on(device), **changes))

    @property
    def run_id(self) -> str:
        """Id of the run."""
        return self.session.run_id

    @property
    def capacity(self) -> Capacity:
        """What the workers offer."""
        return self.execution.capacity

    @property
    def shares_memory(self) -> bool:
        """Whether all tasks run in this process, so that results are handed over without a copy."""
        return self.execution.capacity.in_process

    @property
    def results_together(self) -> int:
        """Most results of one worker from which one task takes parts."""
        return self.execution.results_together

    @property
    def partition_workers(self) -> list[int] | None:
        """[partitions] index of the worker that holds each; None lets the scheduler choose."""
        return self.execution.partition_workers

    def bucket_workers(self, buckets: int) -> list[int] | None:
        """Index of the worker for the tasks of each bucket, the same every time; None where all tasks share memory.

        Otherwise the scheduler would send some of a bucket's tasks to other workers, with copies of the bucket. As the
        worker is known beforehand, rows for all buckets of a worker travel together.
        """
        return None if self.shares_memory else [bucket % len(self.session.workers) for bucket in range(buckets)]

    # How tasks are called

    def for_tasks(self, tasks: int) -> Self:
        """The engine with each worker's threads shared among the tasks that run there at once, of `tasks` in all.

        A single task has the threads of all workers that share the cores of its machine.
        """
        if tasks <= 1:
            return replace(self, _kernel_threads=self.capacity.host_threads)
        at_once = min(self.capacity.threads, -(-tasks // self.capacity.workers))
        return replace(self, _kernel_threads=max(1, self.capacity.kernel_threads // max(1, at_once)))

    def for_partitions(self, space: MemorySpace = MemorySpace.DEVICE) -> Self:
        """The engine for tasks that hold partitions, or buckets whose arrays are in `space`.

        A worker with a GPU runs one such task at a time, since several would need more memory than the GPU has. The
        task has all of the worker's threads for kernels on the host. Tasks that hold nothing on the GPU run as on other
        workers: with results in files a worker runs `partitions_at_once` of them, which share its threads.
        """
        takes_gpu = space is MemorySpace.DEVICE or not self.capacity.device_bytes
        return replace(self, _partitions=takes_gpu)

    def in_background(self) -> Self:
        """The engine for tasks that a worker starts when it has nothing else to start, with one thread for kernels.

        If such tasks start kernels on a GPU, these wait for the kernels of the stages.
        """
        return replace(self, _background=True, _kernel_threads=1)

    @property
    def _resources(self) -> dict[str, float] | None:
        """The resources of Dask that a task needs."""
        on_gpu = self._partitions and self.capacity.device_bytes and self.session.has_gpu_resource
        return {GPU: 1} if on_gpu else None

    def _call(self, function: Callable[..., Any], soon: bool) -> TaskCall:
        threads, at_once = self._kernel_threads, None
        if self._resources and not self._background:
            threads = max(threads, self.capacity.kernel_threads)
        limit = self.execution.partitions_at_once
        if self._partitions and not soon and limit is not None and limit < self.capacity.threads:
            threads, at_once = max(1, self.capacity.kernel_threads // limit), limit
        has_gpus = bool(self.capacity.device_bytes)
        on_gpu = has_gpus and not self.shares_memory and not self._background
        return TaskCall(installed_version(), function, threads, on_gpu, self._files, at_once, has_gpus)

    # Starting tasks

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Future:
        """Start one task `function(*arguments)`; see `map`."""
        return self.map(name, function, [arguments])[0]

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Future]:
        """Start a task `function(*own)` for each `own` of `arguments`, on the workers with the indexes `at`, if these
        are given and the workers live. Futures among the arguments, or in lists of them, are replaced by their results.

        A worker takes its tasks in their order, and those that are `soon` before any others: a task that takes a small
        part of a large result then runs as soon as the result is made, and not after it was spilled.
        """
        if not arguments:
            return []
        addresses = list(self.session.workers)
        # A worker may have left since the index was chosen.
        workers = None if at is None else [[addresses[index % len(addresses)]] for index in at]
        return self._start(name, function, arguments, workers, soon)

    def _start(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        workers: Sequence[Sequence[str]] | None,
        soon: bool = False,
        only: bool = False,
    ) -> list[Future]:
        """See `Session.start`."""
        call, priority = self._call(function, soon), int(soon) - int(self._background)
        return self.session.start(
            name, call, arguments, workers, resources=self._resources, priority=priority, only=only
        )

    def on_every_worker(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """See `Session.on_every_worker`."""
        return self.session.on_every_worker(self.execution, function, *arguments)

    def leave_to_workers(self, name: str, function: Callable[..., Any], *arguments: Any) -> None:
        """Start a task `function(*arguments)` in the background on every worker, for its side effects there.

        Nobody waits for these tasks, and their failures are not reported.
        """
        addresses = [[address] for address in self.session.workers]
        calls = [arguments for _ in addresses]
        fire_and_forget(self.in_background()._start(name, function, calls, addresses, only=True))

    # Waiting for tasks

    def wait(self, futures: Sequence[Future], stage: Stage | None = None) -> None:
        """Wait for tasks and report each to `stage`. Raises what a task raises, or ClusterLost."""
        finished = as_completed(list(futures), loop=self.session.client.loop)
        while not finished.is_empty():
            for future in self._wait_for(partial(_next_batch, finished)):
                if future.status != "finished":
                    self.gather([future])
                if stage is not None:
                    stage.task_done()

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks, in order. Raises as `wait` does."""
        return mapped(self.session.gather(futures, self.execution, self._resources or ()))

    def peek(
        self,
        futures: Sequence[Future],
        part: Callable[[Any], T],
        at: Sequence[int] | None = None,
        stage: Stage | None = None,
    ) -> list[T]:
        """`part` of each task's result, in order, which should be small, as counts are. Raises as `wait` does.

        The results stay where they are: other tasks take the parts, or this process does where memory is shared. If
        the worker `at[i]` of each result is known, a task takes the parts of several results there. Reports the
        `futures` to `stage`.
        """
        if self.shares_memory:
            self.wait(futures, stage)
            return [part(result) for result in self.gather(futures)]
        # Under the name of the tasks: if Dask meets the name of a group of tasks again after it forgot the group, it
        # never forgets that group again.
        name = key_split(futures[0].key) if futures else "peek"
        groups = [[place] for place in range(len(futures))] if at is None else together(at, self.results_together)
        looks = [(part, [futures[place] for place in own]) for own in groups]
        looked = self.map(name, _parts_of, looks, None if at is None else [at[own[0]] for own in groups], soon=True)
        if stage is not None:
            self.wait(futures, stage)
        found: dict[int, T] = {}
        for own, parts in zip(groups, self.gather(looked), strict=True):
            found |= zip(own, parts, strict=True)
        return [found[place] for place in range(len(futures))]

    def move_to_host(self, futures: Sequence[Future]) -> None:
        """Move results of ended tasks from the GPUs' memory to the hosts'. A task that needs one gets it back.

        Dask moves results by itself only when the results that it counts fill most of a GPU. It does not count the
        memory of running tasks.
        """
        from .workers.device_results import move_to_host

        self.on_every_worker(move_to_host, [future.key for future in futures])

    def holders(self, futures: Sequence[Future]) -> list[int]:
        """Index of a worker that has each result, which must be in memory; 0 if none has it any more."""
        if self.shares_memory and len(self.session.workers) == 1:
            return [0] * len(futures)
        index = {address: i for i, address in enumerate(self.session.workers)}
        found = self.session.client.who_has(futures)
        return [next((index[own] for own in found.get(future.key, ()) if own in index), 0) for future in futures]

    def _wait_for(self, work: Callable[[], Awaitable[T]], only: Sequence[str] = ()) -> T:
        return self.session.wait_for(work, self.execution, self._resources or (), only)

    # Gangs: tasks that wait for each other

    def refresh_workers(self) -> int:
        """Make the workers that the cluster has now those of the run; returns their number. Raises ClusterLost."""
        self.session.refresh_workers()
        return len(self.session.workers)

    def workers_now(self) -> dict[str, Mapping[str, Any]]:
        """What the scheduler says of each worker that the cluster has now, helpers too, by address.

        Raises ClusterLost.
        """
        return workers_of(self.session.client)

    def on_cpus(self) -> Self:
        """The engine for tasks on workers without a GPU, if the workers of the run have GPUs."""
        capacity = replace(self.capacity, device_bytes=0, kernel_threads=0)
        return replace(self, execution=replace(self.execution, capacity=capacity, device="cpu"), _partitions=False)

    def communicator_name(self) -> str:
        """See `Session.communicator_name`."""
        return self.session.communicator_name()

    @contextmanager
    def exclusive(self, purpose: str) -> Iterator[None]:
        """Hold the cluster's lock for this purpose within the block: two gangs at once would wait for each other's
        GPUs, or take the memory that each has planned with. Where workers are in this process a gang is one task, which
        needs no lock.

        Tells for whom it waits. Raises as `wait` does, and as `WorkerLock`.
        """
        if self.shares_memory:
            yield
            return
        lock = WorkerLock(self.session.client, purpose, self.run_id)
        try:
            while holder := self._wait_for(lock.acquire):
                self.session.tell(f"for {purpose} of another run on this cluster: {holder}")
            self.session.tell("")
            yield
        finally:
            lock.release()

    def run_gang(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        beside: Callable[[], None] = lambda: None,
    ) -> list[Future]:
        """Run `function(*arguments[i])` on the i-th worker and on no other, all at once, so that the tasks may wait for
        each other; returns the futures when all have ended. Calls `beside` once they are started.

        Raises what a task raises, StateLost if a worker is lost or a task reports that it lost another.
        """
        addresses = list(self.session.workers)[: len(arguments)]
        tasks = self.start_on(name, function, arguments, addresses)
        beside()
        self.wait_for_gang(tasks, addresses)
        return tasks

    def start_on(
        self, name: str, function: Callable[..., Any], arguments: Sequence[Sequence[Any]], addresses: Sequence[str]
    ) -> list[Future]:
        """Start `function(*arguments[i])` on the worker with the address addresses[i] and on no other."""
        return self._start(name, function, arguments, [[address] for address in addresses], only=True)

    def wait_for_gang(self, tasks: Sequence[Future], addresses: Sequence[str]) -> None:
        """Wait until the tasks of a gang on these workers have ended.

        Raises what a task raises, StateLost if a worker is lost or a task reports that it lost another. Tasks that end
        well keep their results.
        """
        try:
            self._wait_until_ended(tasks, addresses)
        except ClusterLost as error:
            for task in tasks:  # a task on a lost worker would never end
                if task.status == "pending":
                    task.release()
            raise StateLost(str(error)) from error

    def wait_for_one(self, tasks: Sequence[Future], addresses: Sequence[str]) -> list[Future]:
        """Wait until at least one of the tasks on these workers has ended; returns those that have.

        Raises what a task raises, ClusterLost if one of the workers is lost.
        """
        finished = as_completed(list(tasks), loop=self.session.client.loop)
        ended = self._wait_for(partial(_next_batch, finished), addresses)
        self.gather([task for task in ended if task.status != "finished"])
        return ended

    def wait_with_gang(self, futures: Sequence[Future], gang: Sequence[Future]) -> None:
        """Wait for tasks that take results of a gang, which no other worker could make again.

        Raises as `wait` does, StateLost if a worker with a result of the gang is lost.
        """
        try:
            self._wait_until_ended(futures, list(self.session.workers)[: len(gang)])
        except ClusterLost as error:
            for future in (*futures, *gang):  # a lost result would wait for its worker for ever
                future.release()
            raise StateLost(str(error)) from error

    def _wait_until_ended(self, tasks: Sequence[Future], addresses: Sequence[str]) -> None:
        """Raises what a task raised; a ClusterLost only if no task raised anything else."""
        finished = as_completed(list(tasks), loop=self.session.client.loop)
        self._wait_for(partial(_all_ended, finished), addresses)
        lost = None
        for task in tasks:
            if task.status in ("error", "cancelled", "lost"):
                try:
                    self.gather([task])
                except ClusterLost as error:
                    lost = error
        if lost is not None:
            raise lost

    def cut_lineage(
        self, name: str, futures: Sequence[Future], function: Callable[..., Any], arguments: Sequence[Sequence[Any]]
    ) -> list[Future]:
        """Cut the lineage of results: returns futures of the same results that depend on nothing but `arguments`.

        Each result stays in memory where it is. If it is lost, `function(*own)` of its `arguments` makes it again. The
        `futures` must be in memory when this is called, and may be released when it returns.
        """
        key_split.cache_clear()
        client = self.session.client
        # A result lies on one worker, also where several workers share the memory of this process.
        alone = self.shares_memory and len(self.session.workers) == 1
        holders = {} if alone else client.who_has(futures)
        tasks = [(ResultKey(future.key), function, *own) for future, own in zip(futures, arguments, strict=True)]
        detached = self._start(name, held_or_made, tasks, [list(holders.get(future.key, ())) for future in futures])
        self.wait(detached)
        if holders:
            # With the restriction, a task that runs again while there are no workers would wait for that one worker.
            scheduler: Any = client.scheduler
            restrictions = {future.key: None for future in detached}
            self._wait_for(partial(scheduler.set_restrictions, worker=restrictions))
        return detached

    @contextmanager
    def subscribed(self, topic: str, listener: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """Call `listener` within the block with every event that a task logs under `topic`."""
        client = self.session.client
        client.subscribe_topic(topic, lambda event: listener(event[1]))
        try:
            yield
        finally:
            client.unsubscribe_topic(topic)


def _parts_of(part: Callable[[Any], T], results: Sequence[Any]) -> list[T]:
    return [part(result) for result in results]


async def _all_ended(finished: as_completed) -> None:
    """Wait until all tasks have ended; after the first failure only for the time in which the others notice it."""
    deadline = None
    while not finished.is_empty():
        seconds = None if deadline is None else max(0.0, deadline - time.monotonic())
        try:
            future = await asyncio.wait_for(anext(finished), seconds)
        except TimeoutError:
            return
        if deadline is None and future.status != "finished":
            deadline = time.monotonic() + _NOTICING_SECONDS


async def _next_batch(finished: as_completed) -> list[Future]:
    """The tasks that have ended since the last batch, at least one."""
    first = await anext(finished)
    return [first, *finished.next_batch(block=False)]
