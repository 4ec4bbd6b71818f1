"""One release everywhere: driver, scheduler and workers send each other functions by name and objects by field."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import version
from typing import Any, TypeVar

from distributed import get_worker
from distributed.versions import get_versions

from ..tasks.errors import UsageError

__all__ = ["PACKAGE", "at_release", "difference", "refusal", "release"]

PACKAGE = "edgemill"
_PARTS = {PACKAGE: None, "python": 2, "dask": None, "distributed": None, "numpy": 1}
"""What must agree, and in how many parts of its version: 2 of 3.11.7 are 3.11; None for all."""
_MEND = "install the same release everywhere, start it again, and run again"

T = TypeVar("T")


@cache
def release() -> str:
    """Edgemill's version in this process."""
    return version(PACKAGE)


def difference(theirs: Mapping[str, Any]) -> str | None:
    """What `distributed.versions.get_versions` of another process tells that does not go with this one; None if all
    does. Both versions are named.
    """
    ours = get_versions([PACKAGE])["packages"]
    for name, parts in _PARTS.items():
        here, there = ours[name], theirs["packages"].get(name)
        if there is None:
            return f"has no {name}, and here is {name} {here}"
        if here.split(".")[:parts] != there.split(".")[:parts]:
            return f"has {name} {there}, and here is {name} {here}"
    return None


def refusal(scheduler: Mapping[str, Any], workers: Mapping[str, Mapping[str, Any]]) -> UsageError | None:
    """The error of a cluster that does not go with this process, by what its parts tell of their versions."""
    found = difference(scheduler)
    if found is not None:
        return UsageError(f"the Dask scheduler {found}: {_MEND}")
    others = {address: found for address, own in workers.items() if (found := difference(own)) is not None}
    for address, found in others.items():
        more = f" ({len(others) - 1} more do not go with this run either)" if len(others) > 1 else ""
        return UsageError(f"the worker at {address} {found}{more}: {_MEND}")
    return None


def at_release(driver: str, task: Callable[..., T], *arguments: Any) -> T:
    """Task: `task(*arguments)`, on a worker of the driver's release. Raises UsageError on any other, which is late.

    A worker that cannot even import this leaves, by Dask's own rule, and the task is done elsewhere.
    """
    if driver != release():
        raise UsageError(
            f"the worker at {get_worker().address} came while the run was on its way and has {PACKAGE} {release()}, "
            f"and the run is of {PACKAGE} {driver}: {_MEND}"
        )
    return task(*arguments)
