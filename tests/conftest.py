"""What every test relies on: names that cannot be mixed up, few threads, and the same examples every time in CI."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Generator, Sequence
from functools import cache
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import HealthCheck, settings

from examples import be_quick, examples
from frozen_objects import count_frozen_once

pytest_plugins = ["trials"]

ROOT = Path(__file__).resolve().parent.parent


class RefuseBareNames(MetaPathFinder):
    """The code is `edgemill.kernels`; `kernels` would be a second copy of it, or tests/kernels, or foreign."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname.partition(".")[0] in {"package", "kernels", "tasks", "pipeline"}:
            raise ImportError(f"import edgemill.{fullname}, not {fullname}")
        return None


sys.meta_path.insert(0, RefuseBareNames())
sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() != ROOT]
os.environ["PYTHONSAFEPATH"] = "1"  # for subprocesses, which a test may start in the project's root
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # some images set it: each subprocess would compile all modules anew

# Two threads, or parallel code would not be parallel; not more, since tests share the cores with Dask and each other.
os.environ.setdefault("NUMBA_NUM_THREADS", "2")
for pool in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(pool, "1")

# Clusters stay for the tests to come. Dask would look at their threads, loops and memory up to 100 times a second,
# which takes a tenth of a core for each process of tests.
for interval in ("WORKER__PROFILE__INTERVAL", "ADMIN__TICK__INTERVAL", "WORKER__MEMORY__MONITOR_INTERVAL"):
    os.environ.setdefault(f"DASK_DISTRIBUTED__{interval}", "1s")
os.environ.setdefault("DASK_DISTRIBUTED__ADMIN__SYSTEM_MONITOR__INTERVAL", "10s")

# No deadline: the first call of a kernel compiles it.
settings.register_profile("here", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("here"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "here")


def pytest_configure(config: pytest.Config) -> None:
    """Without the slow tests properties are tried on fewer examples."""
    if "not slow" in config.option.markexpr:
        be_quick()
        settings.register_profile("quick", settings.default, max_examples=examples(100))
        settings.load_profile("quick")


LEAST_PROCESSES, MOST_PROCESSES = 3, 4
"""Of tests; each, with the workers that it starts, takes up to 2 GB. One alone keeps a core busy for 3/4 of the time,
so two would leave two cores idle for a quarter of it.
"""

CLUSTER_TESTS = (ROOT / "tests/pipeline", ROOT / "tests/faults")
"""Tests of clusters and processes. A scheduler may take a worker for lost while its machine stops for seconds."""


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """As many processes as cores, but three at least: many tests wait for clusters."""
    return max(LEAST_PROCESSES, min(MOST_PROCESSES, len(os.sched_getaffinity(0))))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What collection makes stays; to search it for cycles time and again would take a quarter of the time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Without a device the GPU's turn is skipped; what needs none, such as compiling, has no marker.

    Tests that may take longer than others come first: at the end all processes but one would wait for them.

    In CI a test of CLUSTER_TESTS that fails is run once more, and listed under RERUN.
    """
    from backends import devices

    items.sort(key=lambda item: item.get_closest_marker("timeout") is None)
    if os.environ.get("CI"):
        for item in items:
            if _of_clusters(item.path):
                item.add_marker(pytest.mark.flaky(reruns=1))
    if not devices():
        for item in items:
            if item.get_closest_marker("gpu"):
                item.add_marker(pytest.mark.skip(reason="no CUDA device"))


def pytest_collection_finish(session: pytest.Session) -> None:
    """What is imported by now stays: tests that look for what a run has left would go through all of it each time.

    Workers with GPUs are not forked, since CUDA does not survive it.
    """
    from backends import devices

    if (
        not session.config.option.collectonly
        and not devices()
        and any(_of_clusters(item.path) for item in session.items)
    ):
        from quick_starts import fork_workers

        fork_workers()
    gc.collect()
    gc.freeze()
    count_frozen_once()


@cache
def _of_clusters(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in CLUSTER_TESTS)
