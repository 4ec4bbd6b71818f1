"""A Dask scheduler that runs already: where it is, whether one of this release answers, and when it has workers."""

from __future__ import annotations

import json
import logging
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import dask
from distributed import Client, Security
from distributed.comm.core import Comm, connect
from distributed.core import send_recv
from distributed.utils import LoopRunner, silence_logging_cmgr

from ..tasks.errors import ClusterLost, UsageError
from .arriving import await_workers
from .releases import PACKAGE, refusal
from .settings import ClusterSettings
from .tls import check_address, security, speaks_tls

__all__ = ["running"]

_START_SECONDS = 30
"""How long to wait for a scheduler, where `least_workers` does not ask for patience."""
_ANSWER_SECONDS = 5
"""What is connected to must answer within."""
_LOOKING_SECONDS = 0.2
"""Between two looks for a scheduler file."""


@contextmanager
def running(settings: ClusterSettings) -> Iterator[Client]:
    """A client of the scheduler that the settings name, as soon as it has workers enough.

    Raises ClusterLost if it does not answer or has too few workers, UsageError for an address or a file that names no
    scheduler, for certificates that do not go with it, and for another release.
    """
    patience = _START_SECONDS if settings.least_workers is None else settings.waiting_seconds
    certificates = security(settings)
    end = time.monotonic() + patience
    if settings.least_workers is not None:
        _await_file(settings.scheduler_file, end)
    address = _address(settings)
    check_address(address, certificates)
    try:
        _meet(address, certificates, _left(end))
        client = Client(address, timeout=_left(end), set_as_default=False, security=certificates)
    except OSError as error:
        if not address.startswith("tls://") and speaks_tls(address):
            raise UsageError(
                f"the scheduler at {address} speaks TLS: use tls:// and set cluster.tls_ca_file, cluster.tls_cert_file "
                "and cluster.tls_key_file"
            ) from error
        with_tls = " with TLS and a certificate of that authority" if address.startswith("tls://") else ""
        raise ClusterLost(f"no Dask scheduler answers at {address}{with_tls}: {_reason(error)}") from error
    with silence_logging_cmgr(logging.CRITICAL), client:  # what fails is told once, by the exception that ends the run
        await_workers(client, settings.least_workers or 1, settings.waiting_seconds)
        yield client


def _meet(address: str, certificates: Security | None, seconds: float) -> None:
    """Ends when a scheduler of this release has answered.

    A client would wait for ever where something else listens, and hold up the process when it cannot be made.
    """
    if dask.config.get("distributed.client.security-loader", None):
        return  # which only a client asks
    try:
        LoopRunner().run_sync(_asked, address, certificates, seconds, callback_timeout=seconds + _ANSWER_SECONDS)
    except TimeoutError:
        raise TimeoutError("what listens there gives no answer") from None


async def _asked(address: str, certificates: Security | None, seconds: float) -> None:
    secured = (certificates or Security()).get_connection_args("client")
    try:
        there = await connect(address, timeout=seconds, **secured)
    except ValueError as error:  # Tornado's, of a connection that was closed before TLS began
        raise OSError("it closes the connection") from error
    try:
        theirs = await send_recv(there, op="versions", packages=[PACKAGE])
        # Workers with the preload do not come to a scheduler of another release: it would be waited for them in vain.
        other = None if theirs is None else refusal(theirs, {})
        if other is not None:
            raise other
        if theirs is None or not await _is_scheduler(there):
            raise UsageError(f"cluster.scheduler: at {address} is a Dask worker: name its scheduler")
    finally:
        there.abort()


async def _is_scheduler(there: Comm) -> bool:
    """Whether it knows of workers, which a worker does not."""
    try:
        await send_recv(there, op="identity", n_workers=0)
    except TypeError:
        return False
    return True


def _reason(error: BaseException) -> str:
    """What stood in the way at first: Dask says how long it tried."""
    text = str(error)
    while error.__cause__ is not None:
        error = error.__cause__
    return str(error) or text


def _left(end: float) -> float:
    """Seconds until then, one at least."""
    return max(1.0, end - time.monotonic())


def _await_file(path: str | None, end: float) -> None:
    """Wait for a scheduler file, whole, that is about to be written."""
    while path is not None and time.monotonic() < end:
        with suppress(OSError, ValueError):
            json.loads(Path(path).read_text(encoding="utf-8"))
            return
        time.sleep(_LOOKING_SECONDS)


def _address(settings: ClusterSettings) -> str:
    """Where the scheduler is that runs already. Raises UsageError for a scheduler file that does not say."""
    path = settings.scheduler_file
    if path is None:
        return settings.scheduler or ""
    if not os.path.isfile(path):
        raise UsageError(f"cluster.scheduler_file: there is no file {path}")
    try:
        return str(json.loads(Path(path).read_text(encoding="utf-8"))["address"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UsageError(f"cluster.scheduler_file: {path} is not what a Dask scheduler writes: {error!r}") from error
