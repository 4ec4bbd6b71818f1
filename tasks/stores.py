"""What clients of object stores raise, as errors of ours: which of it passes by itself, and a retry may succeed.

Clients are known by the names of their classes, and answers by their HTTP status, as none of them need be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from .errors import EdgemillError, StoreLost, UsageError

__all__ = ["as_ours", "asked", "is_clients", "is_lost", "is_refused_condition"]

_UNANSWERED = {
    "ConnectionError",  # Python's, botocore's and that of requests
    "TimeoutError",
    "Timeout",
    "HTTPClientError",  # botocore: timeouts, and connections that broke
    "IncompleteReadError",
    "ClientConnectionError",  # aiohttp
    "ClientPayloadError",
    "ServiceRequestError",  # azure-core
    "ServiceResponseError",
    "TransportError",  # google-auth
}
_UNTRUSTED = {"SSLError", "ClientSSLError", "ClientConnectorCertificateError"}
"""No time makes a certificate better, or the address that should have another scheme."""
_BUSY = (408, 429)
"""HTTP: it took too long, or these are too many requests; as all that are the server's fault, from 500 on."""
_NOT_IMPLEMENTED = 501
"""HTTP: the server does not know what is asked for, and never will."""
_BAD_REQUEST = 400
_OURS = {"builtins", "cupy", "cupy_backends", "edgemill", "numba", "numpy", "pyarrow"}
"""Where errors come from that no client of a store raises: what is read goes to the GPU at once."""


@contextmanager
def asked(what: str, url: str) -> Iterator[None]:
    """Within it, a store that does not answer is StoreLost, and what its client has no common word for, such as that
    there are no credentials, UsageError: "cannot `what` `url`: …". What is no client's, and OSErrors of stores that
    answer, stay as they are; of a path that is no URL, all does.
    """
    try:
        yield
    except EdgemillError:
        raise
    except Exception as error:
        own = is_clients(error) and not isinstance(error, OSError | ValueError | EOFError)
        lost = is_lost(error)
        if "://" not in url or not (own or lost):
            raise
        raise (StoreLost if lost else UsageError)(f"cannot {what} {url}: {_first_line(error)}") from error


def as_ours(error: Exception, what: str) -> EdgemillError:
    """An error of a store's client, whatever it is: StoreLost if it passes, else UsageError."""
    return (StoreLost if is_lost(error) else UsageError)(f"cannot {what}: {_first_line(error)}")


def is_clients(error: Exception) -> bool:
    """Whether a client of a store, or Python's own input and output, raised it."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] not in _OURS


def is_lost(error: BaseException) -> bool:
    """Whether it, or what it came from, is of a store that does not answer, or not now."""
    for cause in _causes(error):
        names = {kind.__name__ for kind in type(cause).__mro__}
        if names & _UNTRUSTED:
            return False
        status = _status(cause)
        if names & _UNANSWERED or status in _BUSY or (status >= 500 and status != _NOT_IMPLEMENTED):
            return True
    return False


def is_refused_condition(error: BaseException) -> bool:
    """Whether a conditional write failed because the store knows no such; of a store that lets read."""
    return any(_status(cause) in (_NOT_IMPLEMENTED, _BAD_REQUEST) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error, and one after the other what it came from."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__


def _status(error: BaseException) -> int:
    """The HTTP status of the answer, as botocore, aiohttp, azure-core and gcsfs have it; 0 for none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found: Any = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = next((value for name in ("status", "status_code", "code") if (value := getattr(error, name, None))), 0)
    return int(found) if isinstance(found, int | str) and str(found).isdecimal() else 0


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
