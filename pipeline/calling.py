"""How a task is called by the worker that runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from threading import BoundedSemaphore
from typing import Any, TypeVar

from dask.utils import key_split
from distributed import get_worker

from .. import kernels
from ..kernels.device import own_memory, synchronize, what_broke
from ..kernels.threads import kernel_threads
from ..tasks.errors import OutOfRoom
from .in_files import check_limits, mapped, put_in_files
from .leaving import leave

__all__ = ["Name", "TaskOutOfRoom", "call", "call_in_files", "call_in_turn", "call_on_gpu", "recall"]

T = TypeVar("T")

_turns: dict[int, BoundedSemaphore] = {}
"""How many tasks this process runs at once → what lets in so many."""


class TaskOutOfRoom(OutOfRoom):
    """A task found no memory, on the host or on a GPU. What helps depends on the plan: the engine says it."""


def call(function: Callable[..., T], threads: int, arguments: Sequence[Any]) -> T:
    """What `function(*arguments)` gives, its kernels with so many threads. Raises TaskOutOfRoom for want of memory,
    OutOfRoom for want of open files; a process whose GPU is broken ends.
    """
    with kernel_threads(threads), own_memory():
        try:
            return function(*arguments)
        except Exception as error:
            broken = what_broke(error)
            if broken is not None:
                leave(broken)
            if isinstance(error, MemoryError):
                raise TaskOutOfRoom(f"a task ran out of memory ({error})") from error
            check_limits(error)
            raise


def call_in_files(linked: bool, function: Callable[..., Any], threads: int, arguments: Sequence[Any]) -> Any:
    """Where results lie in files: `linked` from one worker to another, or sent."""
    return call(_in_files, threads, (linked, function, arguments))


def call_in_turn(
    at_once: int, linked: bool, function: Callable[..., Any], threads: int, arguments: Sequence[Any]
) -> Any:
    """As `call_in_files`, so many `at_once`. A task that waits has mapped nothing yet."""
    with _turns.setdefault(at_once, BoundedSemaphore(at_once)):
        return call_in_files(linked, function, threads, arguments)


def _in_files(linked: bool, function: Callable[..., Any], arguments: Sequence[Any]) -> Any:
    """What is mapped, or written, is so within what turns errors into ours."""
    return put_in_files(function(*mapped(arguments)), linked)


@dataclass(frozen=True)
class Name:
    """Of a result, told to a task that shall not depend on it."""

    key: Any


def recall(held: Name, function: Callable[..., Any], *arguments: Any) -> Any:
    """The result, if this worker holds it, or else `function(*arguments)`."""
    key_split.cache_clear()  # Dask's, of 100,000 names, in every process: 300 bytes each that nobody asks for again
    try:
        found: Any = mapped(get_worker().data[held.key])
    except KeyError:
        found = function(*arguments)
    return found


def call_on_gpu(function: Callable[..., Any], threads: int, arguments: Sequence[Any]) -> Any:
    """On a worker that gets what others send beside the arrays of its own tasks."""
    return call(_to_the_end, threads, (function, *arguments))


def _to_the_end(function: Callable[..., Any], *arguments: Any) -> Any:
    """What goes wrong in a kernel is the fault of the task that started it, and of no later one."""
    try:
        found = function(*arguments)
        synchronize()
        return found
    finally:
        kernels.trim()
