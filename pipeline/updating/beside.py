"""Calls in other threads, beside the rest of an update."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")


def beside(call: Callable[[], T]) -> Future[T]:
    """The outcome of a call in a thread of its own. The process ends only once it is there."""
    pool = ThreadPoolExecutor(1)
    outcome = pool.submit(call)
    pool.shutdown(wait=False)
    return outcome
