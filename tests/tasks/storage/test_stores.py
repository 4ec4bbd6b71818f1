"""Errors of object stores' clients: those that a retry may solve, and others."""

from __future__ import annotations

from typing import Any

import pytest

from edgemill.tasks.errors import InputError, StoreLost, UsageError
from edgemill.tasks.storage.stores import store_errors

botocore = pytest.importorskip("botocore.exceptions")


class Answer(Exception):
    """An error with a status, as in aiohttp, azure-core and gcsfs."""

    def __init__(self, **status: object) -> None:
        super().__init__("an answer")
        vars(self).update(status)


OutOfMemoryError = type("OutOfMemoryError", (MemoryError,), {"__module__": "cupy.cuda.memory"})
"""An error of CuPy, which need not be installed."""


def answered(status: int) -> Exception:
    response = {"Error": {"Code": "SlowDown"}, "ResponseMetadata": {"HTTPStatusCode": status}}
    error: Exception = botocore.ClientError(response, "GetObject")
    return error


def translated(status: int) -> OSError:
    """Raise the error from another, as s3fs does."""
    error = OSError(16, "Please reduce your request rate.")
    error.__cause__ = answered(status)
    return error


@pytest.mark.parametrize(
    "error",
    [
        ConnectionResetError(104, "Connection reset by peer"),
        TimeoutError("timed out"),
        botocore.EndpointConnectionError(endpoint_url="http://store"),
        botocore.ReadTimeoutError(endpoint_url="http://store"),
        botocore.ConnectionClosedError(endpoint_url="http://store"),
        answered(503),
        translated(503),
        translated(500),
        Answer(status=429),
        Answer(status_code=502),
        Answer(code="504"),
    ],
    ids=repr,
)
def test_errors_that_a_retry_may_solve(error: Exception) -> None:
    with (
        pytest.raises(StoreLost, match="read s3://bucket/x") as caught,
        store_errors("read", "s3://bucket/x"),
    ):
        raise error
    assert (caught.value.exit_code, caught.value.__cause__) == (4, error)


@pytest.mark.parametrize(
    "error",
    [
        botocore.NoCredentialsError(),
        botocore.SSLError(endpoint_url="x", error="expired"),
        answered(403),
        Answer(code=7),
    ],
    ids=repr,
)
def test_errors_that_a_user_must_solve(error: Exception) -> None:
    with pytest.raises((UsageError, type(error))) as caught, store_errors("read", "s3://bucket/x"):
        raise error
    assert not isinstance(caught.value, StoreLost)
    assert isinstance(caught.value, UsageError) or isinstance(error, OSError)


@pytest.mark.parametrize(
    ("error", "url"),
    [
        (translated(404), "s3://bucket/x"),
        (FileNotFoundError(2, "no such file"), "s3://bucket/x"),
        (ValueError("no Parquet"), "s3://bucket/x"),
        (KeyError("a mistake of ours"), "s3://bucket/x"),
        (InputError("nulls"), "s3://bucket/x"),
        (OutOfMemoryError("the GPU's, which is no setting of the store"), "s3://bucket/x"),
        (ConnectionResetError(104, "Connection reset by peer"), "/mnt/x"),
        (Answer(status=503), "/mnt/x"),
    ],
    ids=repr,
)
def test_errors_that_are_not_changed(error: Exception, url: str) -> None:
    with pytest.raises(type(error)) as caught, store_errors("read", url):
        raise error
    assert caught.value is error


def test_a_circular_chain_of_causes() -> None:
    error: Any = Answer()
    other = Answer()
    error.__cause__, other.__cause__ = other, error
    with pytest.raises(UsageError), store_errors("read", "s3://bucket/x"):
        raise error
