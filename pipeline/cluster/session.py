"""A run's session on a Dask cluster: its workers, the tasks that it starts there, and what it sets up on workers."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from operator import attrgetter
from typing import Any, TypeAlias, TypeVar
from weakref import WeakSet

import distributed
from distributed import Client, Worker
from distributed.comm.core import CommClosedError
from distributed.diagnostics.plugin import WorkerPlugin
from distributed.protocol.cuda import cuda_deserialize, cuda_serialize
from distributed.protocol.serialize import register_generic

from ... import kernels
from ...kernels.runtime.device import Device
from ...kernels.runtime.sizes import SizedArrays
from ...tasks.errors import ClusterLost, UsageError
from ...tasks.messages import Payload
from .batching import shorten_interval
from .connecting.connect import await_workers, tell_nobody
from .execution import GPU, KERNEL_THREADS, PART_OF_GPU, WHOLE_GPU, Capacity, Execution, by_host, cores_here
from .failures import Failures
from .task_calls import TaskCall, broken_gpu_message
from .versions import PACKAGE, installed_version, version_error
from .watchdog import Watchdog, WorkerLost, workers_of
from .workers.spill import SpillToFiles, can_link, offer, open_many, withdraw

_TRIES = 4
"""How often a task may lose its worker. Dask's own limit is as high (`distributed.scheduler.allowed-failures`)."""
_RETURN_SECONDS = 30
"""How long to wait for a worker in place of a lost one."""
_DEPARTURES = ("closing-worker", "retired")
"""Dask's events of a worker that is closed on purpose, as when a cluster shrinks, and not of one that is killed."""

T = TypeVar("T")
Future: TypeAlias = "distributed.Future[Any]"
"""The result of a task, wherever it is."""


class Session:
    """Starts the tasks of one run and waits for them.

    Keys of tasks end with the run's id and the fingerprint of its `input`: no result of an earlier run, or of other
    files, is taken for one of this run.
    """

    def __init__(
        self,
        client: Client,
        run_id: str,
        input: str = "none",
        waiting_seconds: float = 300,
        tell: Callable[[str], None] = tell_nobody,
    ) -> None:
        """`tell` is called with what the run waits for, and with "" when it goes on.

        Raises ClusterLost if no worker joins within `waiting_seconds`.
        """
        self.client = client
        self.run_id = run_id
        self.tell = tell
        self._waiting_seconds = waiting_seconds
        self._key_suffix = f"{run_id}-{input}"
        self._tasks_started = 0
        self._communicators = 0
        self.shared_folders: dict[tuple[str, ...], tuple[str, ...]] = {}
        """Addresses of workers → the folders that these workers share; see `carriers.carrier_for`."""
        self._futures: WeakSet[Future] = WeakSet()
        self._plugins = RunPlugins(client, run_id)
        self._watchdog = Watchdog(client, run_id, waiting_seconds, tell)
        self.workers = await_workers(client, 1, waiting_seconds, tell)
        """What the scheduler says of each worker of the run, by address."""
        self._failures = Failures(client)
        self.needs_gpu = False
        """Whether only workers with the resource GPU belong to the run, because other workers lack it."""
        self.capacity = self._offered()
        """What the workers offered at the start."""
        self._undo = ExitStack()
        self._undo.callback(shorten_interval(client))

    def _offered(self) -> Capacity:
        workers = self.workers.values()
        return Capacity(
            len(self.workers),
            min((worker["nthreads"] for worker in workers), default=1),
            min((worker["memory_limit"] or 0 for worker in workers), default=0),
            in_process=all(address.startswith("inproc://") for address in self.workers),
            kernel_threads=min(map(kernel_threads_of, workers), default=1),
        )

    def _leave_cpus_out(self) -> None:
        """Make the workers with the resource GPU those of the run. The others are helpers."""
        helpers = [worker for worker in self.workers.values() if GPU not in worker["resources"]]
        self.needs_gpu = True
        self.workers = self._of_the_run(self.workers, True)
        threads = sum(map(kernel_threads_of, helpers))
        self.capacity = replace(self._offered(), helpers=len(helpers), helper_threads=threads)

    def _of_the_run(self, workers: Mapping[str, Any], needs_gpu: bool) -> dict[str, Any]:
        return {a: worker for a, worker in workers.items() if not needs_gpu or GPU in worker["resources"]}

    @property
    def has_gpu_resource(self) -> bool:
        """Whether all workers declare the resource GPU."""
        return all(GPU in worker["resources"] for worker in self.workers.values())

    def execution_on(self, device: str) -> Execution:
        """The execution on these workers, on the `device` auto, cpu or gpu.

        `auto` chooses the GPUs of workers that declare the resource GPU; without that, several workers may share a GPU.
        If only some declare it, the others take no part in the run, except as helpers.

        Raises UsageError if `device` is gpu and a worker has none, and the errors of `on_every_worker`.
        """
        everyone = self.workers
        if device != "cpu" and self._of_the_run(everyone, True) and not self.has_gpu_resource:
            self._leave_cpus_out()
        on_cpus = Execution(self.capacity)
        if device == "cpu" or (device == "auto" and not self.has_gpu_resource):
            return on_cpus
        in_process = self.capacity.in_process
        found: list[Device] = [kernels.device()] if in_process else self.on_every_worker(on_cpus, kernels.device)
        for worker, own in zip(self.workers.values(), found, strict=True):
            if own.missing and device == "gpu":
                raise UsageError(f"cluster.device is gpu, and worker {worker['name']} has none: {own.missing}")
        if any(own.missing for own in found):
            self.needs_gpu, self.workers = False, everyone
            self.capacity = self._offered()
            return Execution(self.capacity)
        capacity = replace(self.capacity, device_bytes=min(own.memory_bytes for own in found))
        return Execution(capacity, device=found[0].name)

    def capacity_by_host(self, execution: Execution) -> Capacity:
        """The capacity of an execution on CPUs, with the hosts of the workers. Raises as `on_every_worker`."""
        capacity = execution.capacity
        if capacity.in_process or capacity.workers == 1 or capacity.device_bytes:
            return capacity
        cores = self.on_every_worker(execution, cores_here)
        hosts = by_host(cores)
        threads = min(min(cores[own[0]][1], len(own) * capacity.kernel_threads) for own in hosts)
        return replace(capacity, hosts=len(hosts), host_threads=max(capacity.kernel_threads, threads))

    def refuse_other_versions(self) -> None:
        """Raises UsageError if the scheduler or a worker has another version of edgemill than this process, or none;
        ClusterLost if one of them does not answer. Tasks check the workers that join later: see `TaskCall`.
        """
        if self.capacity.in_process:
            return
        scheduler: Any = self.client.scheduler
        ask = partial(self.client.sync, callback_timeout=self._waiting_seconds)
        try:
            error = version_error(
                ask(scheduler.versions, packages=[PACKAGE]),
                # A worker that leaves meanwhile is left out.
                ask(scheduler.broadcast, msg={"op": "versions", "packages": [PACKAGE]}, on_error="ignore"),
            )
        except (OSError, CommClosedError, TimeoutError) as lost:
            raise ClusterLost(f"cannot read the versions of the Dask cluster: {lost!r}; run again") from lost
        if error is not None:
            raise error

    # Tasks

    def start(
        self,
        name: str,
        call: TaskCall,
        arguments: Sequence[Sequence[Any]],
        workers: Sequence[Sequence[str]] | None = None,
        *,
        resources: dict[str, float] | None = None,
        priority: int = 0,
        only: bool = False,
    ) -> list[Future]:
        """Start a task `call(own)` for each `own` of `arguments`, on the workers at the addresses that `workers` has
        for it, if any.

        With `only`, no other worker takes the task. Workers take tasks of a higher `priority` first.
        """
        if self.needs_gpu and not only:
            resources = {GPU: WHOLE_GPU if resources else PART_OF_GPU}
        options: dict[str, Any] = {"pure": False, "resources": resources, "priority": priority}
        keys = self._keys(name, len(arguments))
        if workers is None or not any(workers):  # in one message to the scheduler
            futures: list[Future] = self.client.map(call, [list(own) for own in arguments], key=keys, **options)
        else:  # in one message for each set of workers
            places: dict[tuple[str, ...], list[int]] = {}
            for place, addresses in enumerate(workers):
                places.setdefault(tuple(addresses), []).append(place)
            started: dict[int, Future] = {}
            for addresses, own in places.items():
                tasks = self.client.map(
                    call,
                    [list(arguments[place]) for place in own],
                    key=[keys[place] for place in own],
                    workers=list(addresses) or None,
                    allow_other_workers=bool(addresses) and not only,
                    **options,
                )
                started |= zip(own, tasks, strict=True)
            futures = [started[place] for place in range(len(arguments))]
        self._futures.update(futures)
        return futures

    def _keys(self, name: str, tasks: int) -> list[str]:
        first = self._tasks_started + 1
        self._tasks_started += tasks
        # Numbers of equal length: Dask takes the tasks of one message in the order of their keys.
        return [f"{name}-{self._key_suffix}-{i:09}" for i in range(first, self._tasks_started + 1)]

    def on_every_worker(self, execution: Execution, function: Callable[..., T], *arguments: Any) -> list[T]:
        """Call `function(*arguments)` once on every worker; returns the results in the order of `workers`.

        If a worker is lost, its replacement is awaited and all workers are called again. Raises what the function
        raises, and ClusterLost if workers are lost again and again.
        """
        has_gpus = bool(execution.capacity.device_bytes)
        on_gpu = has_gpus and not execution.capacity.in_process
        call = TaskCall(installed_version(), function, self.capacity.kernel_threads, on_gpu, numba_later=has_gpus)
        keys: list[str] = []
        for _ in range(_TRIES):
            addresses = list(self.workers)
            futures = [
                self.client.submit(partial(call, arguments), key=key, workers=[address], pure=False)
                for address, key in zip(addresses, self._keys("everywhere", len(addresses)), strict=True)
            ]
            keys += [str(future.key) for future in futures]
            self._futures.update(futures)
            try:
                return self.gather(futures, execution, only=addresses)
            except WorkerLost as error:
                lost = error
            for future in futures:
                future.release()
            self.refresh_workers()
        raise ClusterLost(broken_gpu_message(self.client, keys) or str(lost)) from lost

    def gather(
        self,
        futures: Sequence[Future],
        execution: Execution,
        resources: Collection[str] = (),
        only: Collection[str] = (),
    ) -> list[Any]:
        """The results of tasks, in order; arguments and errors as of `wait_for`."""
        work = partial(self.client.gather, list(futures), asynchronous=True)
        return list(self.wait_for(work, execution, resources, only))

    def wait_for(
        self,
        work: Callable[[], Awaitable[T]],
        execution: Execution,
        resources: Collection[str] = (),
        only: Collection[str] = (),
    ) -> T:
        """The result of `work`, which runs in the client's event loop. Its tasks need workers with all `resources`, and
        the workers `only` if there are any.

        Raises what a task raises, ClusterLost if no worker can run the tasks, WorkerLost if one of `only` is lost.
        """
        if self.needs_gpu:
            resources = {*resources, GPU}

        async def watched() -> T:
            return await self._watchdog.watch(work(), resources, only)

        try:
            result: T = self.client.sync(watched)
        except Exception as error:
            ours = self._failures.translated(error, execution)
            if ours is None:
                raise
            raise ours from error
        return result

    # Workers

    def refresh_workers(self) -> None:
        """Make the workers that the cluster has now those of the run, after waiting for replacements of lost workers.

        A worker that was retired, as when a cluster shrinks, gets no replacement.
        """
        if self.client.scheduler is None:
            raise self._failures.lost_scheduler
        present = self._of_the_run(workers_of(self.client), self.needs_gpu)
        retired = sum(self._was_retired(address) for address in self.workers if address not in present)
        others = len(workers_of(self.client)) - len(present)
        with suppress(TimeoutError):
            self.client.wait_for_workers(max(1, len(self.workers) - retired) + others, timeout=_RETURN_SECONDS)
        self.workers = self._of_the_run(await_workers(self.client, 1, self._waiting_seconds, self.tell), self.needs_gpu)
        if not self.workers:
            raise ClusterLost("the cluster has no worker with the resource GPU any more: start one, and run again")

    def _was_retired(self, address: str) -> bool:
        return any(event.get("action") in _DEPARTURES for _, event in self.client.get_events(address))

    def send_between_gpus(self) -> None:
        """Have workers send messages from GPU to GPU where the protocol can, until `close`.

        Raises ClusterLost if workers are lost again and again.
        """
        self._plugins.send_between_gpus(self.capacity.in_process)

    def keep_results_in_files(self, execution: Execution) -> bool:
        """Have workers keep results in files, until `close`; returns whether all workers and this process can link the
        files of each worker.

        Raises ClusterLost if workers are lost again and again.
        """
        self._plugins.keep_results_in_files()
        return can_link_everywhere(partial(self.on_every_worker, execution))

    def communicator_name(self) -> str:
        """A new name for a communicator: a group that was taken for lost must not meet the groups that replace it."""
        self._communicators += 1
        return f"{self.run_id}-{self._communicators}"

    # The end

    def release_all(self) -> None:
        """Release all futures of the run on a cluster that lives on; frames of the run's exception hold them.

        Dask's `cancel` is not used: if a task that no client waits for stands between two cancelled tasks, `cancel`
        fails in the scheduler and closes the client's connection (2026.7.1).
        """
        for future in list(self._futures):
            future.release()

    def close(self) -> None:
        """Undo what the session set up on a cluster that lives on: plugins of workers, and the client's interval."""
        self._undo.close()
        self._plugins.remove()


def kernel_threads_of(worker: Mapping[str, Any]) -> int:
    """Threads for the kernels of a worker, by what the scheduler says of it."""
    return int(worker["resources"].get(KERNEL_THREADS, worker["nthreads"]))


def register_payloads() -> None:
    """Let this process send and receive payloads from GPU to GPU, and spill results from its GPU to the host."""
    register_generic(Payload, "cuda", cuda_serialize, cuda_deserialize)  # and all its subclasses
    with suppress(ImportError):
        from dask_cuda.is_device_object import is_device_object

        is_device_object.register(SizedArrays, attrgetter("on_device"))


class DeviceMessages(WorkerPlugin):
    """Has workers send and receive messages from GPU to GPU, also workers that join later."""

    def __init__(self, run_id: str) -> None:
        self.name = f"edgemill-device-messages-{run_id}"

    def setup(self, worker: Worker) -> None:
        """Register the types, before the worker's first task. They stay registered when the run ends."""
        register_payloads()


_REGISTERING_TRIES = 4
"""Attempts to register a plugin, each of which loses a worker."""
_REMOVING_SECONDS = 10
"""How long to wait until all workers have removed a plugin."""


class RunPlugins:
    """Registers plugins of workers, and removes them when the run ends."""

    def __init__(self, client: Client, run_id: str) -> None:
        self._client, self._run_id = client, run_id
        self._names: list[str] = []

    def send_between_gpus(self, in_process: bool) -> None:
        """Have worker processes send messages from GPU to GPU where the protocol can. Raises as `_register`."""
        if not in_process:
            self._register(DeviceMessages(self._run_id))

    def keep_results_in_files(self) -> None:
        """Have workers keep the arrays that they receive in files of their own folders. Raises as `_register`."""
        self._register(SpillToFiles(self._run_id))
        open_many()  # this process maps the results that it gathers

    def _register(self, plugin: SpillToFiles | DeviceMessages) -> None:
        """Raises ClusterLost if workers are lost again and again."""
        self._names.append(plugin.name)
        for _ in range(_REGISTERING_TRIES):
            try:
                self._client.register_plugin(plugin)
                return
            except OSError as error:  # a worker was lost meanwhile, and some workers were not reached
                if self._client.status != "running":
                    raise  # the scheduler is lost
                lost = error
        raise ClusterLost(f"lost workers again and again while they were set up: {lost}; run again") from lost

    def remove(self) -> None:
        """Remove the plugins from the workers of a cluster that lives on."""
        scheduler: Any = self._client.scheduler
        while self._names:
            name = self._names.pop()
            with suppress(Exception):  # the cluster may be lost, which must not change how the run ends
                self._client.sync(scheduler.unregister_worker_plugin, name=name, callback_timeout=_REMOVING_SECONDS)


def can_link_everywhere(on_every_worker: Callable[..., list[Any]]) -> bool:
    """Whether all workers and this process can read the files of each worker, and link to them."""
    offers = on_every_worker(offer)
    linked = all(on_every_worker(can_link, offers)) and all(os.access(path, os.R_OK) for path in offers)
    on_every_worker(withdraw, offers)
    return linked
