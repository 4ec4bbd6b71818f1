"""Checks that the driver, the scheduler and the workers have the same versions of the packages that matter.

They send each other functions by name and objects by field, which works between equal versions only.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from typing import Any

from distributed import get_worker
from distributed.versions import get_versions

from ...tasks.errors import UsageError

PACKAGE = "edgemill"
_COMPARED_PARTS = {PACKAGE: None, "python": 2, "dask": None, "distributed": None, "numpy": 1}
"""Package → the leading parts of its version that must agree: 2 parts of 3.11.7 are 3.11; None for the whole."""
_ADVICE = "install the same release everywhere, start it again, and run again"


@cache
def installed_version() -> str:
    """The version of edgemill in this process."""
    return version(PACKAGE)


def version_difference(other: Mapping[str, Any]) -> str | None:
    """The first difference between another process and this one, with both versions; None if they agree.

    `other` is what `distributed.versions.get_versions` gives there.
    """
    own = get_versions([PACKAGE])["packages"]
    for name, parts in _COMPARED_PARTS.items():
        here, there = own[name], other["packages"].get(name)
        if there is None:
            return f"has no {name}, and here is {name} {here}"
        if here.split(".")[:parts] != there.split(".")[:parts]:
            return f"has {name} {there}, and here is {name} {here}"
    return None


def version_error(scheduler: Mapping[str, Any], workers: Mapping[str, Mapping[str, Any]]) -> UsageError | None:
    """The error for a cluster whose versions differ from this process's; None if they agree.

    Takes what `get_versions` gives on the scheduler and on each worker, by address.
    """
    found = version_difference(scheduler)
    if found is not None:
        return UsageError(f"the Dask scheduler {found}: {_ADVICE}")
    others = {address: found for address, own in workers.items() if (found := version_difference(own)) is not None}
    for address, found in others.items():
        more = f" ({len(others) - 1} other workers differ, too)" if len(others) > 1 else ""
        return UsageError(f"the worker at {address} {found}{more}: {_ADVICE}")
    return None


def refuse_other_version(driver: str) -> None:
    """In a task: raises UsageError if this worker's version of edgemill is not the driver's.

    A worker that joins during a run is checked only here. One without edgemill cannot unpickle the task, and Dask then
    runs the task elsewhere.
    """
    if driver != installed_version():
        raise UsageError(
            f"the worker at {get_worker().address} joined during the run and has {PACKAGE} {installed_version()}, "
            f"and the run is of {PACKAGE} {driver}: {_ADVICE}"
        )
