"""What the imports of a command leave out."""

from __future__ import annotations

import gc
import os
import subprocess
import sys

import pytest

from edgemill.pipeline.run.mining import collector_off

PROGRAM = """
import os, sys
from edgemill.pipeline.cli.running import light_imports
before = dict(os.environ)
with light_imports(False):
    import numpy
assert dict(os.environ) == before and "pandas" not in sys.modules
print(len(os.listdir("/proc/self/task")))
"""


def threads(**given: str) -> int:
    """Threads of a process that imports NumPy as a command does."""
    own = {name: value for name, value in os.environ.items() if not name.endswith("_NUM_THREADS")}
    done = subprocess.run([sys.executable, "-c", PROGRAM], env=own | given, capture_output=True, text=True, check=True)
    return int(done.stdout)


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted on Linux")
def test_blas_starts_no_threads_unless_it_is_told_to() -> None:
    one = threads(OPENBLAS_NUM_THREADS="1")  # Arrow may start some of its own
    assert threads() == one
    if len(os.sched_getaffinity(0)) > 1:
        assert threads(OPENBLAS_NUM_THREADS="2") == one + 1


def test_cupy_does_not_import_scipy() -> None:
    pytest.importorskip("cupy")
    code = """
import sys
from edgemill.pipeline.cli.running import hide_scipy_from_cupy
finders = list(sys.meta_path)
hide_scipy_from_cupy()
print("cupyx.scipy.special" in sys.modules, "scipy" in sys.modules, sys.meta_path == finders)
import scipy.sparse
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "True False True\n"


@pytest.mark.parametrize("enabled", [True, pytest.param(False, marks=pytest.mark.slow)])
@pytest.mark.parametrize("frozen", [True, False])
def test_the_collector_is_off_during_imports(enabled: bool, frozen: bool) -> None:
    """And is afterwards as it was. Objects are frozen if the process has frozen others."""
    was_on, before = gc.isenabled(), gc.get_freeze_count()
    try:
        (gc.enable if enabled else gc.disable)()
        (gc.freeze if frozen else gc.unfreeze)()
        with pytest.raises(ImportError), collector_off():
            assert not gc.isenabled()
            made = list[int]()
            raise ImportError
        assert gc.isenabled() == enabled
        assert any(one is made for one in gc.get_objects()) != frozen  # frozen ones are not listed
    finally:
        (gc.enable if was_on else gc.disable)()
        if not before:
            gc.unfreeze()


def test_a_run_imports_programs_shards_and_updates_only_if_it_needs_them() -> None:
    code = """
import sys
import edgemill.pipeline.run.full, edgemill.pipeline.run.mining
rooms = ("kernels.cpu", "tasks.programs", "tasks.shards", "pipeline.stages.sharding", "pipeline.updating.updating")
print({"numba", "scipy", *(f"edgemill.{room}" for room in rooms)} & set(sys.modules))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
