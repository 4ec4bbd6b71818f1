"""Thread limits for each Python thread, and the lock of the layer that cannot run two kernels at the same time."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

from edgemill.kernels.runtime import threads
from edgemill.kernels.runtime.threads import kernel_threads

CROWD = """
import sys, threading
import numpy as np
from numba import njit, prange
from edgemill.kernels.runtime import threads
from edgemill.kernels.runtime.threads import kernel_threads, layer

@njit(parallel=True, nogil=True)
def total(values):
    whole = 0
    for i in prange(len(values)):
        whole += values[i]
    return whole

values = np.arange(200_000)
total(values)
start, wrong = threading.Barrier(4), []

def work():
    start.wait()
    for _ in range(50):
        with kernel_threads(2):
            with kernel_threads(1):
                pass
            if total(values) != 19_999_900_000:
                wrong.append(1)

crowd = [threading.Thread(target=work) for _ in range(4)]
for thread in crowd: thread.start()
for thread in crowd: thread.join()
print(layer(), len(wrong))
"""


def test_the_number_is_clamped_and_comes_back() -> None:
    before = numba.get_num_threads()
    with kernel_threads(0) as few:
        assert few == numba.get_num_threads() == 1
        with kernel_threads(1_000_000) as many:
            assert many == numba.get_num_threads() == int(os.environ["NUMBA_NUM_THREADS"])
        assert numba.get_num_threads() == 1
    with pytest.raises(KeyError), kernel_threads(1):
        raise KeyError
    assert numba.get_num_threads() == before


@pytest.mark.parametrize("layer", ["workqueue", pytest.param("default", marks=pytest.mark.slow)])
def test_several_python_threads_run_kernels(layer: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", CROWD],
        env=os.environ | {"NUMBA_THREADING_LAYER": layer, "NUMBA_NUM_THREADS": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    name, wrong = done.stdout.split()
    assert wrong == "0"
    assert layer in (name, "default")


@pytest.mark.parametrize(
    ("count", "given", "read"),
    [
        (16, {}, {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": str(threads.SPINS)}),
        (2, {}, {"OMP_WAIT_POLICY": "passive"}),
        (16, {"GOMP_SPINCOUNT": "7"}, {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "7"}),
        (16, {"OMP_WAIT_POLICY": "active"}, {"OMP_WAIT_POLICY": "active"}),
    ],
)
def test_how_threads_wait(
    count: int, given: dict[str, str], read: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Libgomp reads the variables when it is loaded; the environment of the process stays as it was."""
    found = []
    monkeypatch.setattr(threads, "cores", lambda: count)
    monkeypatch.setattr(os, "environ", dict(given))
    monkeypatch.setattr(threads, "_load_openmp", lambda: found.append(dict(os.environ)))
    threads.set_passive_waiting()
    assert os.environ == given and found in ([read], [] if given == read else [read])
