"""Tasks of groups that send each other packets on Dask workers."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Sequence
from typing import Any

import numpy as np
from distributed import get_worker

from carrying import SECONDS, Plan, Told, converse
from edgemill.pipeline.cluster.carriers import CarrierChoice, open_carrier
from edgemill.pipeline.cluster.worker_carrier import WorkerCarrier
from edgemill.tasks.errors import EdgemillError

elsewhere = threading.Event()
"""Group 1 takes part in another run or exchange: no packet reaches it before that. All workers are in one process."""


def on_worker(plan: Plan, run: str, rank: int, addresses: Sequence[str]) -> tuple[int, str]:
    """Task: follow the plan with a carrier over Dask's connections; gives the words received and the carrier's name."""
    carrier = WorkerCarrier.open(get_worker(), run, rank, addresses, SECONDS)
    try:
        return converse(carrier, plan), carrier.name
    except BaseException:
        carrier.abandon()
        raise
    finally:
        carrier.close()
        carrier.close()


def by_choice(plan: Plan, choice: CarrierChoice, run: str, rank: int) -> tuple[int, str]:
    """Task: the same with the chosen carrier."""
    carrier = open_carrier(get_worker(), choice, run, rank, SECONDS)
    try:
        return converse(carrier, plan), carrier.name
    finally:
        carrier.close()


def leaves_at(exchange: int, how: str, run: str, rank: int, addresses: Sequence[str], silence: float = 25.0) -> Told:
    """Task: make exchanges until group 1 leaves at one of them; gives the error."""
    carrier = WorkerCarrier.open(get_worker(), run, rank, addresses, SECONDS, silence)
    nothing = np.zeros(3, np.uint32)
    at = 0
    try:
        while True:
            if rank == 1 and at == exchange:
                if how in ("SIGKILL", "SIGSTOP"):
                    os.kill(os.getpid(), getattr(signal, how))
                getattr(carrier, how)()
            carrier.exchange(nothing, [nothing] * carrier.groups)
            at += 1
    except EdgemillError as error:
        return Told(type(error).__name__, str(error), at, [])
    finally:
        carrier.close()


def spoils(run: str, field: str, rank: int, addresses: Sequence[str]) -> str:
    """Task: group 1 takes part in another run or exchange; gives the error."""
    try:
        carrier = WorkerCarrier.open(get_worker(), run, rank, addresses, SECONDS)
    except EdgemillError as error:  # another one was faster
        return f"{type(error).__name__}: {error}"
    try:
        if rank == 1 and field == "run":
            carrier._connections.inbox.run = "another"
        elif rank == 1:
            carrier._exchange = 5
        if rank == 1:
            elsewhere.set()
        assert elsewhere.wait(SECONDS)
        carrier.exchange(np.zeros(1, np.uint32), [np.zeros(1, np.uint32)] * len(addresses))
    except EdgemillError as error:
        carrier.abandon()
        return f"{type(error).__name__}: {error}"
    finally:
        carrier._connections.inbox.run = run
        carrier.close()
    return ""


def comes(run: str, rank: int, addresses: Sequence[str], seconds: float) -> str:
    """Task: connect to the others; gives the error."""
    try:
        WorkerCarrier.open(get_worker(), run, rank, addresses, seconds).close()
    except EdgemillError as error:
        return f"{type(error).__name__}: {error}"
    return ""


async def left_on(dask_worker: Any) -> list[str]:
    """State that carriers have left in a worker's event loop, after its connections have closed."""
    comms = dask_worker._comms
    while any(op == "edgemill_carrier" for op in comms.values()):
        await asyncio.sleep(0.01)
    tasks = [str(task.get_coro()) for task in asyncio.all_tasks() if _is_of_carriers(task)]
    return tasks + [name for name in dask_worker.handlers if "carrier" in name]


def _is_of_carriers(task: asyncio.Task[Any]) -> bool:
    code = getattr(task.get_coro(), "cr_code", None)
    return code is not None and "carriers" in code.co_filename
