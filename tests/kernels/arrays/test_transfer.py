"""Copies from the GPU, while a kernel runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from edgemill import kernels

SPIN = r"""
extern "C" __global__ void spin(const volatile int* stop, long long cycles) {
    const long long start = clock64();
    while (!*stop && clock64() - start < cycles) {}
}
"""
CYCLES = 10 * 10**9
"""About five seconds."""


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1, 1000, 5_000_000])
def test_a_copy_of_finished_values_does_not_wait_for_a_kernel(count: int) -> None:
    import cupy

    from edgemill.kernels.gpu.arrays.transfer import wait_for

    values = cupy.arange(count, dtype=np.int32)
    state = cupy.full(1, 7)
    kernels.finished_to_host(values)  # makes the buffers of this thread
    spin = cupy.RawKernel(SPIN, "spin")
    memory = cupy.cuda.alloc_pinned_memory(4)
    stop = np.frombuffer(memory, np.int32, 1)
    stop[0] = 1
    spin((1,), (1,), (memory.ptr, CYCLES))  # compiles
    cupy.cuda.runtime.deviceSynchronize()
    stop[0] = 0
    spin((1,), (1,), (memory.ptr, CYCLES))
    ended = cupy.cuda.get_current_stream().record()
    with ThreadPoolExecutor(1) as other:
        waiting = other.submit(wait_for, state)
        while not waiting.running():
            pass
        found = kernels.finished_to_host(values)
        still_runs = not ended.done
        stop[0] = 1
        assert waiting.result().tolist() == [7]
    assert still_runs
    assert np.array_equal(found, np.arange(count))


def test_values_on_the_host_are_not_copied() -> None:
    values = np.arange(3)
    assert kernels.finished_to_host(values) is values
