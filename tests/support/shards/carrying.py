"""Groups that send each other packets, which each of them can tell beforehand, in threads and in processes."""

from __future__ import annotations

import multiprocessing
import os
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing.connection import Connection
from typing import Any, NamedTuple, TypeVar

import numpy as np

from edgemill import kernels
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.shards.carriers.carrier import Carrier, Words
from edgemill.tasks.shards.carriers.gpu_memory import between_gpus
from edgemill.tasks.shards.carriers.shared_memory import SharedMemoryCarrier

T = TypeVar("T")
SECONDS = 60
"""How long groups of tests may take to meet: machines of tests may be busy."""


class Plan(NamedTuple):
    """What all groups send."""

    seed: int
    exchanges: int
    largest: int
    """Words of the largest packets, which come last."""

    def words(self, exchange: int, sender: int, receiver: int) -> Words:
        """A packet; of receiver -1 for all."""
        random = np.random.default_rng([self.seed, exchange, sender, receiver + 1])
        most = 1 + self.largest * (exchange + 1) // self.exchanges
        sizes = np.array([0, 1, random.integers(most), most], np.int64)
        size = int(random.choice(sizes, p=[0.3, 0.2, 0.4, 0.1]))
        return random.integers(2**32, size=size, dtype=np.uint32)


def converse(carrier: Carrier, plan: Plan) -> int:
    """Send and receive all of the plan; gives how many words came."""
    total = 0
    for exchange in range(plan.exchanges):
        common = plan.words(exchange, carrier.rank, -1)
        own = [plan.words(exchange, carrier.rank, g) for g in range(carrier.groups)]
        given = carrier.exchange(common, own)
        for words in (common, *own):
            words[:] = 7  # what was sent may change
        assert len(given) == carrier.groups
        for sender, packet in enumerate(given):
            for words, receiver in ((packet.common, -1), (packet.own, carrier.rank)):
                assert words.dtype == np.uint32
                assert words.flags.c_contiguous
                assert np.array_equal(words, plan.words(exchange, sender, receiver))
                total += len(words)
    return total


def in_threads(work: Callable[[int], T], groups: int) -> list[T]:
    """What `work(rank)` gives for each group; raises what a group raised, ClusterLost only if all that failed did."""
    with ThreadPoolExecutor(groups) as threads:
        running = [threads.submit(work, rank) for rank in range(groups)]
    errors = [error for error in (one.exception() for one in running) if error is not None]
    for error in errors:
        # Frames of a traceback keep maps of packets; a garbage collection does nothing while another thread has one.
        traceback.clear_frames(error.__traceback__)
    if errors:
        raise min(errors, key=lambda error: type(error).__name__ == "ClusterLost")
    return [one.result() for one in running]


def of_tests(process: int) -> str:
    """The name of the groups that a process of tests starts: several processes test at a time."""
    return f"test-{process}"


class Told(NamedTuple):
    """How a group in a process ended."""

    error: str
    """The name of the class of what it raised, or nothing."""
    message: str
    at: float
    """When, by the machine's monotonic clock."""
    left: list[str]
    """Threads that are left."""


def _group(
    work: Callable[..., Any], folders: Sequence[str], rank: int, groups: int, silence: float, pipe: Connection
) -> None:
    try:
        carrier = SharedMemoryCarrier.open(folders, of_tests(os.getppid()), rank, groups, SECONDS, silence)
        try:
            work(carrier, pipe)
        finally:
            carrier.close()
    except Exception as error:
        found = Told(type(error).__name__, str(error), time.monotonic(), [])
    else:
        found = Told("", "", time.monotonic(), [])
    left = [thread.name for thread in threading.enumerate() if thread.name == "shards-heartbeat"]
    pipe.send(found._replace(left=left))


class Groups(NamedTuple):
    """Processes of groups, and what they tell."""

    processes: list[multiprocessing.process.BaseProcess]
    pipes: list[Connection]

    def told(self, rank: int) -> Any:
        """What the group says next."""
        assert self.pipes[rank].poll(SECONDS), f"group {rank} says nothing"
        return self.pipes[rank].recv()


@contextmanager
def processes(work: Callable[..., Any], folders: Sequence[str], groups: int, silence: float = 25.0) -> Iterator[Groups]:
    """Groups that `work(carrier, pipe)`, each in a process. They are ended with the block."""
    context = multiprocessing.get_context("spawn")
    ends = [context.Pipe() for _ in range(groups)]
    started = [
        context.Process(target=_group, args=(work, folders, rank, groups, silence, ends[rank][1]), daemon=True)
        for rank in range(groups)
    ]
    for process in started:
        process.start()
    try:
        yield Groups(list(started), [near for near, _ in ends])
    finally:
        for process in started:
            process.kill()
            process.join()


def says_when(exchange: int, carrier: Carrier, pipe: Connection) -> None:
    """Exchange for ever, and say so at one exchange."""
    nothing = np.zeros(3, np.uint32)
    at = 0
    while True:
        carrier.exchange(nothing, [nothing] * carrier.groups)
        at += 1
        if at == exchange:
            pipe.send(os.getpid())


def converses(plan: Plan, carrier: Carrier, pipe: Connection) -> None:
    """Go by the plan."""
    converse(carrier, plan)


GPU_SIZES = (0, 1, 7, 2**12, 2**21, 3, 2**22 + 5, 2**22, 1)
"""Words of the exchanges; an outbox begins with room for 2^19."""


def gpu_words(exchange: int, sender: int, receiver: int, size: int) -> Any:
    """What one group sends another; on the host in every third case."""
    content = np.arange(size, dtype=np.uint32) * np.uint32(2 * exchange + 1) + np.uint32(16 * sender + receiver)
    on_host = (exchange + sender + receiver) % 3 == 0
    return content if on_host else MemorySpace.DEVICE.place(content)


def gpu_talk(base: Carrier) -> list[bool]:
    """Exchange all sizes. Returns, for each message received in GPU memory or not, whether it lay there; checks all."""
    found = []
    with between_gpus(base) as carrier:
        for exchange, size in enumerate(GPU_SIZES):
            own = [gpu_words(exchange, carrier.rank, g, size + g) for g in range(carrier.groups)]
            common = np.array([exchange, carrier.rank], np.uint32)
            for sender, packet in enumerate(carrier.exchange(common, own)):
                assert packet.common.tolist() == [exchange, sender]
                sent = gpu_words(exchange, sender, carrier.rank, size + carrier.rank)
                assert np.array_equal(kernels.to_host(packet.own), kernels.to_host(sent)), (exchange, sender)
                if len(sent) and not kernels.on_host(sent):
                    found.append(not kernels.on_host(packet.own))
    return found


def gpu_talks(carrier: Carrier, pipe: Connection) -> None:
    """In a process: tell what `gpu_talk` found."""
    pipe.send(gpu_talk(carrier))
