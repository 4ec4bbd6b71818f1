"""Errors of object stores' clients as EdgemillErrors: StoreLost if a retry may succeed, else UsageError.

Errors are recognized by the names of their classes and their HTTP status, since no client needs to be installed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from ..errors import EdgemillError, StoreLost, UsageError

_UNANSWERED = {
    "ConnectionError",  # of Python, botocore and requests
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
"""A retry does not help against a bad certificate or a wrong scheme."""
_BUSY = (408, 429)
"""HTTP status: timeout, too many requests. All from 500 on are retried as well."""
_NOT_IMPLEMENTED = 501
"""HTTP status: the server does not support the request, so a retry does not help."""
_BAD_REQUEST = 400
_OURS = {"builtins", "cupy", "cupy_backends", "edgemill", "numba", "numpy", "pyarrow"}
"""Packages whose errors are not of a store: what is read is decoded and moved to the GPU in the same context."""


@contextmanager
def store_errors(operation: str, url: str) -> Iterator[None]:
    """Context in which a store that does not answer raises StoreLost, and errors that only its client has, such as
    missing credentials, become UsageError: "cannot `operation` `url`: …".

    Other errors are not changed: OSErrors of stores that answer, errors of other packages, and all errors of paths.
    """
    try:
        yield
    except EdgemillError:
        raise
    except Exception as error:
        own = is_client_error(error) and not isinstance(error, OSError | ValueError | EOFError)
        lost = is_store_lost(error)
        if "://" not in url or not (own or lost):
            raise
        raise (StoreLost if lost else UsageError)(f"cannot {operation} {url}: {_first_line(error)}") from error


def wrapped_store_error(error: Exception, operation: str) -> EdgemillError:
    """Any error of a store's client as StoreLost, if a retry may succeed, else UsageError."""
    return (StoreLost if is_store_lost(error) else UsageError)(f"cannot {operation}: {_first_line(error)}")


def is_client_error(error: Exception) -> bool:
    """Whether a store's client or Python's own I/O raised the error."""
    return isinstance(error, OSError) or type(error).__module__.partition(".")[0] not in _OURS


def is_store_lost(error: BaseException) -> bool:
    """Whether the error, or one of its causes, means that the store does not answer now."""
    for cause in _causes(error):
        names = {kind.__name__ for kind in type(cause).__mro__}
        if names & _UNTRUSTED:
            return False
        status = _status(cause)
        if names & _UNANSWERED or status in _BUSY or (status >= 500 and status != _NOT_IMPLEMENTED):
            return True
    return False


def is_refused_condition(error: BaseException) -> bool:
    """Whether a conditional write failed since the store does not support it. The store must be readable."""
    return any(_status(cause) in (_NOT_IMPLEMENTED, _BAD_REQUEST) for cause in _causes(error))


def _causes(error: BaseException) -> Iterator[BaseException]:
    """The error and its chain of causes."""
    cause: BaseException | None = error
    seen: list[BaseException] = []
    while cause is not None and cause not in seen:
        yield cause
        seen.append(cause)
        cause = cause.__cause__


def _status(error: BaseException) -> int:
    """The HTTP status in errors of botocore, aiohttp, azure-core and gcsfs; 0 if there is none."""
    response: Any = getattr(error, "response", None)
    if isinstance(response, Mapping):
        found: Any = response.get("ResponseMetadata", {}).get("HTTPStatusCode")
    else:
        found = next((value for name in ("status", "status_code", "code") if (value := getattr(error, name, None))), 0)
    return int(found) if isinstance(found, int | str) and str(found).isdecimal() else 0


def _first_line(error: BaseException) -> str:
    return str(error).partition("\n")[0] or type(error).__name__
