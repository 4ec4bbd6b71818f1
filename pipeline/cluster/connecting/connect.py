"""Connecting to a Dask scheduler that runs already: its address, its versions, and the wait for its workers.

The event loop of a client that a run starts has a thread of its own. What Dask logs from that thread is dropped, except
critical records.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import dask
from distributed import Client, Future, Security
from distributed.comm.core import Comm, CommClosedError, FatalCommClosedError, connect
from distributed.core import send_recv
from distributed.utils import LoopRunner, sync
from tornado.ioloop import IOLoop

from ....tasks.errors import ClusterLost, UsageError
from ...settings.models import ClusterSettings
from ..versions import PACKAGE, version_error
from ..watchdog import workers_of
from ..workers.ignore_ctrl_c import runner_without_ctrl_c
from ..workers.ready import still_preparing
from .tls import check_address, security, speaks_tls

_ROOTS = ("distributed", "bokeh", "tornado")
"""Loggers of schedulers and workers, which include the loggers below them."""
_IMPORTED_LATER = "distributed.http.proxy"
"""Logger of a module that a scheduler imports when it starts, and that logs then."""


class _OfRuns(logging.Filter):
    """Drops records of Dask from threads that belong to runs, except critical ones: the exception that ends a run
    reports its failures, once.

    Levels of loggers and handlers belong to the whole process and stay as they are. So other clusters in the process go
    on logging, and two runs that end at the same time have nothing to restore.
    """

    def __init__(self) -> None:
        super().__init__()
        self.threads: Counter[int] = Counter()
        """Thread → the number of runs that it belongs to."""

    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= logging.CRITICAL or not self.threads[record.thread or 0]


_of_runs, _lock = _OfRuns(), threading.Lock()


@contextmanager
def own_loop(ignores_ctrl_c: bool = False) -> Iterator[IOLoop]:
    """An event loop in a new thread, which ends with the block. Until then Dask logs only critical records from that
    thread and from the caller's.

    With `ignores_ctrl_c`, processes that start from the loop do not get SIGINT.
    """
    runner = runner_without_ctrl_c() if ignores_ctrl_c else LoopRunner()
    try:
        if not runner.is_started():
            runner.start()
        with _silent(threading.get_ident(), _thread_of(runner)):
            yield runner.loop
    finally:
        runner.stop()


def _thread_of(runner: LoopRunner) -> int:
    found, told = [0], threading.Event()

    def tell() -> None:
        found[0] = threading.get_ident()
        told.set()

    runner.loop.add_callback(tell)
    told.wait()
    return found[0]


@contextmanager
def _silent(*threads: int) -> Iterator[None]:
    """Within the block, Dask logs nothing from these threads but critical records."""
    known = [name for name in list(logging.root.manager.loggerDict) if name.partition(".")[0] in _ROOTS]
    for name in (
        *_ROOTS,
        _IMPORTED_LATER,
        *known,
    ):  # a filter of a logger does not see the records of the loggers below it
        logging.getLogger(name).addFilter(_of_runs)  # adds the same filter only once
    with _lock:
        _of_runs.threads.update(threads)
    try:
        yield
    finally:
        with _lock:
            _of_runs.threads.subtract(threads)


_LOOK_SECONDS = 1.0
"""Most time between two looks at which workers have joined."""
_NAMED = 8
"""Most workers that a message names."""


def tell_nobody(reason: str) -> None:
    """Do not tell what a run waits for."""


def await_workers(
    client: Client, least: int, seconds: float, tell: Callable[[str], None] = tell_nobody
) -> dict[str, Any]:
    """Wait at most `seconds` until the cluster has `least` workers; returns what `workers_of` does.

    Calls `tell` with the workers that have joined and those that are missing, whenever that changes, and with "" at the
    end. Meanwhile the cluster has `least` trivial tasks, since an adaptive cluster (`adapt(minimum=0)`) starts workers
    for tasks only. Raises ClusterLost if the cluster has fewer workers in the end.
    """
    scheduler: Any = client.scheduler
    address, deadline = getattr(scheduler, "address", ""), time.monotonic() + seconds
    preparing: dict[str, float] = {}
    tasks: list[Future[int]] = []
    told = ""
    try:
        while len(found := workers_of(client, seconds)) < least and (left := deadline - time.monotonic()) > 0:
            if not tasks:
                tasks = client.map(int, range(least), key=f"edgemill-await-{uuid.uuid4().hex}", pure=False)
            preparing = still_preparing(client, seconds)
            reason = (
                f"for {_count(least - len(found), least)} of the Dask cluster at {address}: {_who(found, preparing)}"
            )
            if reason != told:
                tell(reason)
                told = reason
            with suppress(TimeoutError):
                client.wait_for_workers(least, timeout=min(_LOOK_SECONDS, left))
    except (OSError, CommClosedError) as error:
        raise ClusterLost(
            f"lost the Dask scheduler at {address} while waiting for workers: {error}; run again"
        ) from error
    finally:
        for task in tasks:
            task.release()
    if told:
        tell("")
    if len(found) >= least:
        return found
    count = f"{len(found)} of {least} workers (cluster.least_workers)" if found else "no workers"
    change = "wait until they are ready" if preparing else "start some"
    raise ClusterLost(
        f"the Dask cluster at {address} has {count} after {seconds:g} s (cluster.waiting_seconds); {change}, and run "
        f"again; {_who(found, preparing)}"
    )


def _count(missing: int, least: int) -> str:
    return f"{missing} of {least} workers" if least > 1 else "a worker"


def _who(found: Mapping[str, Any], preparing: Mapping[str, float]) -> str:
    """The workers that have joined, and those that have started and still compile their kernels."""
    parts = [f"{len(found)} joined" + _list(found)]
    if preparing:
        parts.append(f"{len(preparing)} still compiling kernels" + _list(preparing))
    return ", ".join(parts)


def _list(addresses: Mapping[str, object]) -> str:
    if not addresses:
        return ""
    more = [f"{len(addresses) - _NAMED} more"] * (len(addresses) > _NAMED)
    return f" ({', '.join([*list(addresses)[:_NAMED], *more])})"


_FIRST_ATTEMPT_SECONDS = 1.0
"""Seconds of the first attempt to connect. Each further attempt takes twice as long as the one before, as the network
may be slow.
"""
_LONGEST_ATTEMPT_SECONDS = 30.0
_ANSWER_SECONDS = 5
"""How long the scheduler may take to answer once it is connected."""
_POLL_SECONDS = 0.2
"""Time between two checks for a scheduler file."""


@contextmanager
def running(settings: ClusterSettings, tell: Callable[[str], None] = tell_nobody) -> Iterator[Client]:
    """A client of the scheduler that the settings name, once it has enough workers. It waits `waiting_seconds` for the
    scheduler, and as long for the workers, and calls `tell` with what it waits for, and with "" at the end.

    Raises ClusterLost if the scheduler does not answer or has too few workers. Raises UsageError for an address or a
    file that names no scheduler, for certificates that do not fit, and for another version of edgemill.
    """
    certificates = security(settings)
    deadline = time.monotonic() + settings.waiting_seconds
    if settings.least_workers is not None:
        _await_file(settings.scheduler_file, deadline, tell)
    address = _address(settings)
    check_address(address, certificates)
    with own_loop() as loop:
        _await_scheduler(loop, address, certificates, deadline, tell)
        left = _seconds_left(deadline)
        try:
            client = Client(address, timeout=left, set_as_default=False, security=certificates, loop=loop)
        except OSError as error:
            raise _no_answer(address, error) from error
        tell("")
        with client:
            await_workers(client, settings.least_workers or 1, settings.waiting_seconds, tell)
            yield client


def _await_scheduler(
    loop: IOLoop, address: str, certificates: Security | None, deadline: float, tell: Callable[[str], None]
) -> None:
    """Wait until a scheduler with this version has answered. Raises as `running`."""
    attempt = _FIRST_ATTEMPT_SECONDS
    while True:
        left = deadline - time.monotonic()
        try:
            return _check_scheduler(loop, address, certificates, max(0.0, min(attempt, left)))
        except OSError as error:
            if not address.startswith("tls://") and speaks_tls(address):
                raise UsageError(
                    f"the scheduler at {address} speaks TLS: use tls:// and set cluster.tls_ca_file, "
                    "cluster.tls_cert_file and cluster.tls_key_file"
                ) from error
            if left <= attempt or isinstance(error, FatalCommClosedError):
                raise _no_answer(address, error) from error
            tell(f"for a Dask scheduler at {address} (cluster.waiting_seconds): {_reason(error)}")
        attempt = min(2 * attempt, _LONGEST_ATTEMPT_SECONDS)


def _no_answer(address: str, error: OSError) -> ClusterLost:
    with_tls = " with TLS and a certificate of that authority" if address.startswith("tls://") else ""
    return ClusterLost(
        f"no Dask scheduler answers at {address}{with_tls}: {_reason(error)}; start it, or wait longer for it "
        "(cluster.waiting_seconds)"
    )


def _check_scheduler(loop: IOLoop, address: str, certificates: Security | None, seconds: float) -> None:
    """Wait `seconds` until a scheduler with this version answers. Raises as `running`, and OSError.

    A Client would wait for ever for another program that listens there, and would then keep the process from ending.
    """
    if dask.config.get("distributed.client.security-loader", None):
        return  # only a Client calls that
    try:
        sync(loop, _check_answer, address, certificates, seconds, callback_timeout=seconds + _ANSWER_SECONDS)
    except TimeoutError:
        raise TimeoutError("what listens there gives no answer") from None


async def _check_answer(address: str, certificates: Security | None, seconds: float) -> None:
    tls = (certificates or Security()).get_connection_args("client")
    try:
        comm = await connect(address, timeout=seconds, **tls)
    except ValueError as error:  # Tornado's, if the connection closes before the TLS handshake
        raise OSError("it closes the connection") from error
    try:
        versions = await send_recv(comm, op="versions", packages=[PACKAGE])
        # Workers with the preload never join a scheduler of another version: to wait for them would be in vain.
        refusal = None if versions is None else version_error(versions, {})
        if refusal is not None:
            raise refusal
        if versions is None or not await _is_scheduler(comm):
            raise UsageError(f"cluster.scheduler: at {address} is a Dask worker: name its scheduler")
    finally:
        comm.abort()


async def _is_scheduler(comm: Comm) -> bool:
    """Whether the other side is a scheduler, whose `identity` takes the argument `n_workers`."""
    try:
        await send_recv(comm, op="identity", n_workers=0)
    except TypeError:
        return False
    return True


def _reason(error: BaseException) -> str:
    """The text of the first cause: Dask's own error says only how long it tried."""
    text = str(error)
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or text


def _seconds_left(deadline: float) -> float:
    """Seconds until the deadline, at least one."""
    return max(1.0, deadline - time.monotonic())


def _await_file(path: str | None, deadline: float, tell: Callable[[str], None]) -> None:
    """Wait until a scheduler file exists and is complete."""
    while path is not None and time.monotonic() < deadline:
        with suppress(OSError, ValueError, RecursionError):
            json.loads(Path(path).read_text(encoding="utf-8"))
            return
        tell(f"for the scheduler's file {path} (cluster.waiting_seconds)")
        time.sleep(_POLL_SECONDS)


def _address(settings: ClusterSettings) -> str:
    """The address of the scheduler. Raises UsageError for a scheduler file without one."""
    path = settings.scheduler_file
    if path is None:
        return settings.scheduler or ""
    if not os.path.isfile(path):
        raise UsageError(f"cluster.scheduler_file: there is no file {path}")
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise UsageError(f"cluster.scheduler_file: {path} is not what a Dask scheduler writes: {error!r}") from error
