"""Copies to and from the GPU, while a kernel runs."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from backends import BACKENDS, Backend
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


@pytest.mark.gpu
@pytest.mark.parametrize("count", [1000, 100_000, 2**25])
def test_a_copy_to_the_gpu_is_complete_when_it_returns(count: int) -> None:
    """Other threads read it at once, by streams that wait for none, as for a result that comes back from the host."""
    import cupy

    from edgemill.kernels.gpu.arrays import transfer

    values = np.arange(count, dtype=np.int32)
    spin = cupy.RawKernel(SPIN, "spin")
    goes_on = cupy.zeros(1, np.int32)
    before = cupy.full(count, -1, np.int32)
    cupy.cuda.runtime.deviceSynchronize()
    del before  # its memory is what the copy takes
    spin((1,), (1,), (goes_on, CYCLES // 20))
    there = transfer.to_device_by_threads(values, 3)
    with ThreadPoolExecutor(1) as other:
        assert np.array_equal(other.submit(kernels.finished_to_host, there).result(), values)


@pytest.mark.gpu
@pytest.mark.parametrize("count", [0, 1, 1000, 3 * 2**24 + 5])
@pytest.mark.parametrize("kind", [np.int16, np.int64])
def test_copies_by_several_threads(count: int, kind: type, monkeypatch: pytest.MonkeyPatch) -> None:
    import cupy

    from edgemill.kernels.gpu.arrays import transfer

    values: NDArray[Any] = np.random.default_rng(1).integers(-9000, 9000, count).astype(kind)
    there = transfer.to_device_by_threads(values, 3)
    assert isinstance(there, cupy.ndarray) and there.dtype == kind
    assert np.array_equal(there.get(), values)
    there *= 2  # a kernel that still runs when the copy is asked for
    for array, expected in ((there, 2 * values), (there[::2], 2 * values[::2])):
        back = transfer.to_host_by_threads(array, 3)
        assert isinstance(back, np.ndarray) and back.dtype == kind
        assert np.array_equal(back, expected)


def test_values_on_the_host_are_not_copied() -> None:
    values = np.arange(3)
    assert kernels.finished_to_host(values) is values


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("largest", [1, 1000, 2**20, 2**24])
def test_pieces_are_joined_on_the_host(backend: Backend, largest: int) -> None:
    """Bytes and arrays, empty ones, too, that fit a buffer of copies or not."""
    rng = np.random.default_rng(largest)
    values = rng.integers(0, 256, largest, np.uint8)
    there = backend.put(values, np.uint8)
    backend.get(there)  # waits for the copy
    cut = largest // 3
    for _ in range(2):
        found = kernels.finished_joined([b"head", there[cut:], b"", there[:0], there[:cut], b"end"])
        assert found.tobytes() == b"head" + values[cut:].tobytes() + values[:cut].tobytes() + b"end"
    assert kernels.finished_joined([b"a", b"bc"]).tobytes() == b"abc"
