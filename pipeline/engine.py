"""How the pipeline talks to Dask: tasks with names of their own, results, lost workers as our errors."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar
from weakref import WeakSet

import distributed
from dask.utils import format_bytes, key_split
from distributed import CancelledError, Client, KilledWorker, Lock, as_completed
from distributed.comm.core import CommClosedError
from distributed.scheduler import NoValidWorkerError, NoWorkerError

from .. import kernels
from ..kernels.device import Device
from ..tasks.errors import ClusterLost, EdgemillError, OutOfRoom, StateLost, UsageError
from .arriving import await_workers
from .calling import Name, TaskOutOfRoom, call, call_in_files, call_in_turn, call_on_gpu, recall
from .in_files import FilesOfRun, can_link, mapped, offer, open_many, withdraw
from .leaving import why_they_left
from .releases import PACKAGE, at_release, refusal, release
from .streams import be_prompt
from .transport import DeviceMessages
from .watch import Watch, WorkerGone, workers_of

if TYPE_CHECKING:
    from .telemetry import Stage

__all__ = ["GPU", "Capacity", "Engine", "Future"]

GPU = "GPU"
"""Resource of Dask workers that have a GPU, one each."""

_TRIES = 4
"""How often a task may lose a worker; so many are Dask's too (`distributed.scheduler.allowed-failures`)."""
_RETURN_SECONDS = 30
"""How long to wait for the worker that comes in place of a lost one."""
_ENDING_SECONDS = 10
"""How long to wait for all workers to hear that a run has ended."""
_NOTICING_SECONDS = 30
"""How long to wait for tasks to notice that one of them is lost, once the first has."""
_GOODBYES = ("closing-worker", "retired")
"""What Dask notes of a worker that is closed, as by a cluster that shrinks, and not of one that is killed."""
_RESTARTS = "worker-restart-memory"
"""Dask's topic of workers that exceeded their limit and were ended by their nannies."""

T = TypeVar("T")
Future: TypeAlias = "distributed.Future[Any]"
"""A task's result, wherever it is."""


@dataclass(frozen=True)
class Capacity:
    """What the workers offer."""

    workers: int
    threads: int
    """Threads of the smallest worker."""
    memory_bytes: int
    """Memory of the smallest worker; 0 for no limit."""
    device_bytes: int = 0
    """Memory of the smallest GPU that computes; 0 where the CPU does."""
    in_process: bool = False
    """Whether the workers are in this process: one GPU is all that they have then."""


class Engine:
    """Submits the tasks of one run. Keys carry the run's id and the `input`'s fingerprint, so nothing of an earlier run
    or of other files is ever taken for its own.
    """

    def __init__(self, client: Client, run_id: str, input: str = "none", waiting_seconds: float = 300) -> None:
        """Raises ClusterLost if no worker comes within `waiting_seconds`."""
        self._client = client
        self._watch = Watch(client, run_id, waiting_seconds)
        self._waiting_seconds = waiting_seconds
        self.run_id = run_id
        self._tail = f"{run_id}-{input}"
        self._workers = await_workers(client, 1, waiting_seconds)
        self._shares_memory = all(address.startswith("inproc://") for address in self._workers)
        be_prompt(client)
        self.capacity = Capacity(
            len(self._workers),
            min((worker["nthreads"] for worker in self._workers.values()), default=1),
            min((worker["memory_limit"] or 0 for worker in self._workers.values()), default=0),
            in_process=self._shares_memory,
        )
        self._resources: dict[str, float] | None = None
        self._kernel_threads = 1
        self._in_files = False
        self._linked = False
        self._at_once: int | None = None
        """Partitions that a worker works at, at most, where results lie in files; None: one with each thread."""
        self._take_turns = False
        self._plugins: list[str] = []
        """Name of what workers were given to keep results in files."""
        self._submitted = 0
        self._futures: WeakSet[Future] = WeakSet()
        self.meetings = 0
        """Times that tasks of this run have met."""
        self.remedy = "raise partitioning.count"
        """What makes the part of the graph smaller that a worker holds; as its plan says."""
        self.homes: list[int] | None = None
        """[partitions] worker that keeps each; None lets the scheduler choose for each task."""
        self._restarts_before = len(client.get_events(_RESTARTS))

    @property
    def shares_memory(self) -> bool:
        """Whether all tasks run in this process, so that a whole result costs nothing to hand over."""
        return self._shares_memory

    def refuse_other_releases(self) -> None:
        """Raises UsageError if the scheduler or a worker has another release than this process, or none of edgemill;
        ClusterLost if one of them does not answer. One that comes later does no task: see `at_release`.
        """
        if self._shares_memory:
            return
        scheduler: Any = self._client.scheduler
        ask = partial(self._client.sync, callback_timeout=self._waiting_seconds)
        try:
            error = refusal(
                ask(scheduler.versions, packages=[PACKAGE]),
                # Who leaves meanwhile is not asked.
                ask(scheduler.broadcast, msg={"op": "versions", "packages": [PACKAGE]}, on_error="ignore"),
            )
        except (OSError, CommClosedError, TimeoutError) as lost:
            raise ClusterLost(f"the Dask cluster does not say what versions it has: {lost!r}; run again") from lost
        if error is not None:
            raise error

    def spread(self, tasks: int) -> None:
        """Share each worker's threads among the tasks that run there at once, when there are `tasks` in all."""
        at_once = min(self.capacity.threads, -(-tasks // self.capacity.workers))
        self._kernel_threads = max(1, self.capacity.threads // max(1, at_once))

    def use(self, device: str) -> str:
        """Choose what `device` (auto, cpu or gpu) means on these workers, and count its memory; gives its name.

        `auto` takes the GPUs of workers that all declare the resource GPU: others may share one without knowing.

        Raises UsageError if a worker lacks the GPU that is asked for.
        """
        declared = all(GPU in worker["resources"] for worker in self._workers.values())
        if device == "cpu" or (device == "auto" and not declared):
            return "cpu"
        found: list[Device] = [kernels.device()] if self.shares_memory else self.everywhere(kernels.device)
        for worker, own in zip(self._workers.values(), found, strict=True):
            if own.lack and device == "gpu":
                raise UsageError(f"cluster.device is gpu, and worker {worker['name']} has none: {own.lack}")
        if any(own.lack for own in found):
            return "cpu"
        self.capacity = replace(self.capacity, device_bytes=min(own.memory_bytes for own in found))
        return found[0].name

    @contextmanager
    def on_device(self) -> Iterator[None]:
        """Within it tasks hold partitions. Where a GPU computes, a worker runs one at a time: its memory is not shared
        out. Where results lie in files, as many as `keep_in_files` was told, which share its threads.
        """
        before = self._resources, self._take_turns
        if self.capacity.device_bytes and all(GPU in worker["resources"] for worker in self._workers.values()):
            self._resources = {GPU: 1}
        self._take_turns = self._at_once is not None and self._at_once < self.capacity.threads
        try:
            yield
        finally:
            self._resources, self._take_turns = before

    def keep_in_files(self, at_once: int | None = None) -> None:
        """Have workers keep the arrays of their results in files, from now on to `end`, and map them for tasks; those
        that come later, too. `on_device` they run so many `at_once`. Raises ClusterLost if workers are lost time and
        again.
        """
        self._at_once = at_once
        self._register(FilesOfRun(self.run_id))
        open_many()  # this process maps what it gathers
        offers = self.everywhere(offer)
        self._linked = all(self.everywhere(can_link, offers)) and all(os.access(path, os.R_OK) for path in offers)
        self.everywhere(withdraw, offers)
        self._in_files = True

    def send_from_devices(self) -> None:
        """Have workers send messages from GPU to GPU where the protocol can, from now on to `end`.

        Workers that come later do so, too. Raises ClusterLost if workers are lost time and again.
        """
        self._register(DeviceMessages(self.run_id))

    def _register(self, plugin: FilesOfRun | DeviceMessages) -> None:
        self._plugins.append(plugin.name)
        for _ in range(_TRIES):
            try:
                self._client.register_plugin(plugin)
                return
            except OSError as error:  # a worker went away meanwhile, and others have not heard
                lost = error
        raise ClusterLost(f"workers are lost, or the Dask scheduler is: {lost}; run again") from lost

    def end(self) -> None:
        """Remove this run's plugins from the workers of a cluster that lives on."""
        scheduler: Any = self._client.scheduler
        while self._plugins:
            name = self._plugins.pop()
            with suppress(Exception):  # what cannot be told has gone, and how the run ended stays as it is
                self._client.sync(scheduler.unregister_worker_plugin, name=name, callback_timeout=_ENDING_SECONDS)

    def places(self, receivers: Sequence[int]) -> list[int] | None:
        """Workers for receivers of an exchange: the same for each, every time. None lets the scheduler choose, where
        results have sizes for it to go by.
        """
        return [receiver % len(self._workers) for receiver in receivers] if self._in_files else None

    @property
    def _caller(self) -> Callable[..., Any]:
        if self._in_files:
            return partial(call_in_files, self._linked)
        return call_on_gpu if self.capacity.device_bytes and not self.shares_memory else call

    def submit(self, name: str, function: Callable[..., Any], *arguments: Any) -> Future:
        """Start one task; see `map`."""
        return self.map(name, function, [arguments])[0]

    def keep_apart(self, partitions: int) -> None:
        """Have each partition stay with one worker, from now on, and each worker with its share of them."""
        self.homes = None if self.shares_memory else [p % len(self._workers) for p in range(partitions)]

    def map(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[int] | None = None,
        soon: bool = False,
    ) -> list[Future]:
        """Start a task `function(*own)` for each `own` of `arguments`, on the workers `at` if these are given and
        live. Futures in them, or in lists of them, are waited for.

        A worker takes them in their order, and those that are wanted `soon` before any others: what takes a small part
        of a large result runs when that is made, and not when it has been spilled.

        Without `at` they go to the scheduler in one message.
        """
        if not arguments:
            return []
        workers = list(self._workers)
        where = None if at is None else [[workers[place % len(workers)]] for place in at]  # some may have left
        return self._start(name, function, arguments, where, soon)

    def meet(self) -> int:
        """Take the workers that there are now for those of the run, waiting for those in place of lost ones; gives how
        many there are.
        """
        self._meet_again()
        return len(self._workers)

    def together(self, name: str, function: Callable[..., Any], arguments: Sequence[Sequence[Any]]) -> list[Future]:
        """Run `function(*arguments[i])` on the i-th worker and on no other, all at once, as tasks that wait for each
        other need it; gives the futures when all have ended.

        Raises what a task raised, StateLost if a worker went away or a task lost another one.
        """
        addresses = list(self._workers)[: len(arguments)]
        tasks = self._start(name, function, arguments, [[address] for address in addresses], only=True)
        try:
            finished = as_completed(tasks, loop=self._client.loop)
            self._watched(partial(_all_ended, finished), addresses)
            self._raise_what_failed(tasks)
        except ClusterLost as error:
            for task in tasks:  # those on a worker that is lost would never end
                if task.status == "pending":
                    task.release()
            raise StateLost(str(error)) from error
        return tasks

    def wait_beside(self, futures: Sequence[Future], held: Sequence[Future]) -> None:
        """Wait for `futures`, made of results `held` of `together`, which no other worker could do again.

        Raises as `wait` does, StateLost if a worker went away that `held` them.
        """
        finished = as_completed(list(futures), loop=self._client.loop)
        try:
            self._watched(partial(_all_ended, finished), list(self._workers)[: len(held)])
            self._raise_what_failed(futures)
        except ClusterLost as error:
            for future in (*futures, *held):  # a lost one that is wanted would wait for its worker for ever
                future.release()
            raise StateLost(str(error)) from error

    def _raise_what_failed(self, tasks: Sequence[Future]) -> None:
        """Raises what a task raised; that it lost another one only where none has a reason of its own."""
        lost = None
        for task in tasks:
            if task.status in ("error", "cancelled", "lost"):
                try:
                    self._gather([task])
                except ClusterLost as error:
                    lost = error
        if lost is not None:
            raise lost

    def detach(
        self, name: str, held: Sequence[Future], function: Callable[..., Any], arguments: Sequence[Sequence[Any]]
    ) -> list[Future]:
        """The results `held`, by tasks that depend on nothing but `arguments`: Dask may forget all that led to them.

        Each stays where it is in memory; when it is lost, `function(*own)` of its `arguments` gives it again. To be
        called while `held` are in memory; when it returns they may be let go.
        """
        key_split.cache_clear()
        where = {} if self._shares_memory else self._client.who_has(held)
        tasks = [(Name(future.key), function, *own) for future, own in zip(held, arguments, strict=True)]
        futures = self._start(name, recall, tasks, [list(where.get(future.key, ())) for future in held])
        self.wait(futures)
        if where:
            # Run again while there are no workers, a task would wait for the one it was to run on, whoever comes.
            scheduler: Any = self._client.scheduler
            restrictions = {future.key: None for future in futures}
            self._watched(partial(scheduler.set_restrictions, worker=restrictions))
        return futures

    def _start(
        self,
        name: str,
        function: Callable[..., Any],
        arguments: Sequence[Sequence[Any]],
        at: Sequence[Sequence[str]] | None,
        soon: bool = False,
        only: bool = False,
    ) -> list[Future]:
        """`at` gives addresses for each task; none for any. With `only` no other worker takes a task."""
        first = self._submitted + 1
        self._submitted += len(arguments)
        # Of equal digits: Dask takes tasks of one message in the order of their names.
        keys = [f"{name}-{self._tail}-{i:09}" for i in range(first, self._submitted + 1)]
        if self._take_turns and not soon:
            assert self._at_once is not None
            threads = max(1, self.capacity.threads // self._at_once)
            task = partial(at_release, release(), call_in_turn, self._at_once, self._linked, function, threads)
        else:
            task = partial(at_release, release(), self._caller, function, self._kernel_threads)
        options: dict[str, Any] = {"pure": False, "resources": self._resources, "priority": int(soon)}
        if at is None or not any(at):
            futures: list[Future] = self._client.map(task, [list(own) for own in arguments], key=keys, **options)
        else:
            futures = [
                self._client.submit(
                    task,
                    list(own),
                    key=key,
                    workers=workers or None,
                    allow_other_workers=bool(workers) and not only,
                    **options,
                )
                for own, key, workers in zip(arguments, keys, map(list, at), strict=True)
            ]
        self._futures.update(futures)
        return futures

    def abandon(self) -> None:
        """Let go of all that the run has on a cluster that lives on; frames of its exception hold the futures.

        Dask's `cancel` would fail in the scheduler, and take the client's connection with it, where a task that nobody
        asked for any more stands between two that are cancelled (2026.7.1).
        """
        for future in list(self._futures):
            future.release()

    def everywhere(self, function: Callable[..., T], *arguments: Any) -> list[T]:
        """Run a task once on every worker; gives the results. With a new worker in place of a lost one all run again.

        Raises as `wait` does, and ClusterLost if workers are lost time and again.
        """
        self.spread(1)
        task = partial(at_release, release(), self._caller, function, self._kernel_threads, arguments)
        keys: list[str] = []
        for _ in range(_TRIES):
            first = self._submitted + 1
            self._submitted += len(self._workers)
            futures = [
                self._client.submit(task, key=f"everywhere-{self._tail}-{i}", workers=[address], pure=False)
                for i, address in enumerate(self._workers, first)
            ]
            keys += [str(future.key) for future in futures]
            self._futures.update(futures)
            try:
                return self._gather(futures, only=list(self._workers))
            except WorkerGone as error:
                lost = error
            for future in futures:
                future.release()
            self._meet_again()
        raise ClusterLost(why_they_left(self._client, keys) or str(lost)) from lost

    def _meet_again(self) -> None:
        """Take those that there are by now for the workers of the run, and wait for those in place of lost ones.

        A worker that was told to leave, as by a cluster that shrinks, is not lost: nothing comes in its place.
        """
        there = workers_of(self._client)
        told = sum(self._was_told_to_leave(address) for address in self._workers if address not in there)
        with suppress(TimeoutError):
            self._client.wait_for_workers(max(1, len(self._workers) - told), timeout=_RETURN_SECONDS)
        self._workers = await_workers(self._client, 1, self._waiting_seconds)

    def _was_told_to_leave(self, address: str) -> bool:
        """Whether a worker that is gone has said goodbye to the scheduler, or was sent away by it."""
        return any(event.get("action") in _GOODBYES for _, event in self._client.get_events(address))

    def _killed(self, error: KilledWorker) -> EdgemillError:
        """Workers died time and again in the same task: out of memory if that is what their nannies ended them for."""
        restarts = self._client.get_events(_RESTARTS)[self._restarts_before :]
        if not restarts:
            return ClusterLost(
                why_they_left(self._client, [str(error.task)])
                or f"workers died while running {error.task}, the last at {error.last_worker.address}: "
                f"out of the machine's memory, perhaps ({self.remedy}, or give each worker more memory), or without "
                "this release of edgemill, as their logs say"
            )
        held = max(event["rss"] for _, event in restarts)
        return OutOfRoom(
            f"workers exceeded their memory {len(restarts)} times, the last in {error.task}: one held "
            f"{format_bytes(held)} of {format_bytes(self.capacity.memory_bytes)}: {self.remedy}, give "
            "workers more memory (cluster.memory_limit_bytes=…) or fewer threads (cluster.threads_per_worker=…)"
        )

    def wait(self, futures: Sequence[Future], stage: Stage | None = None) -> None:
        """Wait for tasks, telling `stage` of each; raises what a task raised, or ClusterLost."""
        finished = as_completed(list(futures), loop=self._client.loop)
        while not finished.is_empty():
            for future in self._watched(partial(_batch, finished)):
                if future.status != "finished":
                    self._gather([future])
                if stage is not None:
                    stage.task_done()

    def gather(self, futures: Sequence[Future]) -> list[Any]:
        """The results of tasks, in order; raises as `wait` does."""
        return self._gather(futures)

    def _gather(self, futures: Sequence[Future], only: Collection[str] = ()) -> list[Any]:
        return mapped(list(self._watched(partial(self._client.gather, list(futures), asynchronous=True), only)))

    def _watched(self, work: Callable[[], Awaitable[T]], only: Collection[str] = ()) -> T:
        """What `work` gives in the client's loop; ends, too, when no worker is left that could do it."""

        async def watched() -> T:
            return await self._watch.over(work(), self._resources or (), only)

        try:
            given: T = self._client.sync(watched)
        except Exception as error:
            ours = self._as_ours(error)
            if ours is None:
                raise
            raise ours from error
        return given

    def peek(self, futures: Sequence[Future], part: Callable[[Any], T], at: Sequence[int] | None = None) -> list[T]:
        """A small part of each task's result, such as its counts, in order; raises as `wait` does.

        The result itself stays where it is: another task takes the part, or this process does where memory is shared.
        """
        if self.shares_memory:
            return [part(result) for result in self.gather(futures)]
        # Under the name of what is looked at: Dask keeps a record for ever of a group that it forgets and meets again.
        name = key_split(futures[0].key) if futures else "peek"
        return self.gather(self.map(name, part, [(future,) for future in futures], at, soon=True))

    @contextmanager
    def alone(self, purpose: str) -> Iterator[None]:
        """Within it, no other run of this cluster is within its own for the same purpose."""
        if self.shares_memory:
            yield  # tasks that wait for each other are one task here
            return
        with Lock(f"edgemill-{purpose}", self._client.scheduler, self._client.loop):
            yield

    @contextmanager
    def listening(self, topic: str, hear: Callable[[dict[str, Any]], None]) -> Iterator[None]:
        """Within it, `hear` is called with every event that a task logs under `topic`."""
        self._client.subscribe_topic(topic, lambda event: hear(event[1]))
        try:
            yield
        finally:
            self._client.unsubscribe_topic(topic)

    def _as_ours(self, error: Exception) -> EdgemillError | None:
        """One of Dask's errors as one of ours, or that of a task without memory with what helps; None for others that a
        task raised.
        """
        if isinstance(error, TaskOutOfRoom):
            return OutOfRoom(f"{error}: {self.remedy}")
        if isinstance(error, KilledWorker):
            return self._killed(error)
        if isinstance(error, NoValidWorkerError | NoWorkerError):
            return ClusterLost(f"no worker for a task (cluster.waiting_seconds): {error}; run again")
        if isinstance(error, CancelledError | CommClosedError | TimeoutError):
            return ClusterLost(f"the Dask cluster is gone: {error or type(error).__name__}; run again")
        return None


async def _all_ended(finished: as_completed) -> None:
    """Wait until all tasks have ended; once one has failed, only for as long as the others take to notice."""
    until = None
    while not finished.is_empty():
        left = None if until is None else max(0.0, until - time.monotonic())
        try:
            future = await asyncio.wait_for(anext(finished), left)
        except TimeoutError:
            return
        if until is None and future.status != "finished":
            until = time.monotonic() + _NOTICING_SECONDS


async def _batch(finished: as_completed) -> list[Future]:
    """What has come to an end since the last batch; waits for the first."""
    first = await anext(finished)
    return [first, *finished.next_batch(block=False)]
