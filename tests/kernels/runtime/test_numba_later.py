"""Numba is loaded by the first kernel, which then uses the number of threads that was asked for before."""

from __future__ import annotations

import os
import subprocess
import sys
from textwrap import dedent

import pytest

from edgemill.kernels.runtime.threads import kernel_threads


def printed(script: str, **environment: str) -> list[str]:
    kept = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_THREADING_LAYER")}
    done = subprocess.run(
        [sys.executable, "-c", dedent(script)],
        env=kept | {"NUMBA_NUM_THREADS": "3"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def test_the_number_is_set_when_a_kernel_is_loaded() -> None:
    found = printed("""
        import sys, threading
        from edgemill.kernels.runtime.threads import kernel_threads, threads_now
        with kernel_threads(2, later=True):
            with kernel_threads(1, later=True):
                pass
            print("numba" in sys.modules)
            import edgemill.kernels.cpu
            print(threads_now())
            with kernel_threads(1, later=True):
                print(threads_now())
            print(threads_now())
        print(threads_now())
        """)
    assert found == ["False", "2", "1", "2", "3"]


def test_another_thread_loads_it() -> None:
    found = printed("""
        import threading
        from edgemill.kernels.runtime.threads import kernel_threads, threads_now

        def load():
            import edgemill.kernels.cpu
            found.append(threads_now())

        found = []
        with kernel_threads(2, later=True):
            other = threading.Thread(target=load)
            other.start()
            other.join()
        print(*found, threads_now())
        with kernel_threads(2, later=True):
            print(threads_now())
        """)
    assert found == ["3", "3", "2"]


@pytest.mark.parametrize("layer", ["workqueue", "omp"])
def test_a_named_layer_is_asked_at_once(layer: str) -> None:
    """The lock of the work queue is held before a kernel runs."""
    found = printed(
        """
        import sys
        from edgemill.kernels.runtime.threads import kernel_threads
        with kernel_threads(1, later=True):
            print("numba" in sys.modules)
        """,
        NUMBA_THREADING_LAYER=layer,
    )
    assert found == ["True"]


def test_gpu_kernels_do_not_load_numba() -> None:
    pytest.importorskip("cupy")
    found = printed("""
        import sys
        import edgemill.kernels.gpu
        from edgemill.kernels.gpu.compiling import first_run
        print("numba" in sys.modules)
        """)
    assert found == ["False"]


def test_here_it_is_loaded() -> None:
    """A process that has kernels sets the number at once."""
    import edgemill.kernels.cpu  # noqa: F401

    with kernel_threads(1, later=True) as count:
        assert count == 1
