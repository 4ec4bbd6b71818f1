"""Connecting to a Dask scheduler that runs already: its address, its versions, and its workers."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
from distributed import Client, Security
from distributed.comm.core import Comm, FatalCommClosedError, connect
from distributed.core import send_recv
from distributed.utils import sync
from tornado.ioloop import IOLoop

from ....tasks.errors import ClusterLost, UsageError
from ...settings.models import ClusterSettings
from ..versions import PACKAGE, version_error
from .arrival import await_workers, tell_nobody
from .own_loop import own_loop
from .tls import check_address, security, speaks_tls

_FIRST_ATTEMPT_SECONDS = 1.0
"""Seconds of the first attempt to connect. Each one takes twice as long as that before, as the network may be slow."""
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
        return  # only a Client calls it
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
