"""The GPU of this process, if it has one, and copies of arrays to and from it."""

from __future__ import annotations

import ctypes
import os
import re
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..gpu_shards import machine_id
from ..graph import AnyArray

MIN_CAPABILITY = 8
"""Lowest major compute capability whose GPUs have the shared memory that peeling and cascades need."""
_FATAL = re.compile(
    "cudaError(IllegalAddress|LaunchTimeout|ContextIsDestroyed|Assert|HardwareStackError|IllegalInstruction"
    "|MisalignedAddress|InvalidAddressSpace|InvalidPc|LaunchFailure|ECCUncorrectable|NvlinkUncorrectable)"
    "|CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_TIMEOUT|CONTEXT_IS_DESTROYED|ASSERT|HARDWARE_STACK_ERROR|ILLEGAL_INSTRUCTION"
    "|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|LAUNCH_FAILED|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE)"
)
"""Errors after which CUDA returns the same error for every call until the process is restarted."""


@dataclass(frozen=True)
class Device:
    """The first GPU that this process sees, or the reason why it cannot use one."""

    name: str
    """Name of the GPU; empty without a GPU."""
    memory_bytes: int
    """Memory of the GPU; 0 without a GPU."""
    count: int
    """Number of GPUs that this process sees."""
    missing: str
    """Why no GPU can be used, and what to do; empty if one can be used."""
    machine: str = ""
    """The machine of the GPU; see `kernels.gpu_shards.machine_id`."""
    bus: str = ""
    """The GPU's address on the machine's PCI bus, which is unique on the machine."""


@cache
def device() -> Device:
    """The first GPU that this process sees. Imports CuPy only if the driver reports a GPU."""
    if _cuda.was_set_up:
        return _none("this process was forked from one that used the GPU: start processes by spawn or forkserver")
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return _none("no CUDA driver (libcuda.so.1)")
    found = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(found)) or not found.value:
        return _none("no CUDA device that this process may use")
    _cuda.is_set_up = True
    try:
        import cupy
    except ImportError:
        return _none("no CuPy: install edgemill[cu13] or edgemill[cu12], as the driver has it")
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    if properties["major"] < MIN_CAPABILITY:
        return _none(
            f"{properties['name'].decode()} has compute capability {properties['major']}.{properties['minor']}, and "
            f"the kernels need {MIN_CAPABILITY}.0 or more"
        )
    return Device(
        properties["name"].decode(),
        int(properties["totalGlobalMem"]),
        found.value,
        "",
        machine_id(),
        runtime.deviceGetPCIBusId(0),
    )


class _Cuda:
    """Whether CUDA is set up in this process, or was set up before its fork: then it cannot use CUDA."""

    is_set_up = was_set_up = False

    def after_fork(self) -> None:
        """Called in a child process."""
        if self.is_set_up:
            self.is_set_up, self.was_set_up = False, True
            device.cache_clear()


_cuda = _Cuda()
os.register_at_fork(after_in_child=_cuda.after_fork)


def import_operators() -> None:
    """Import what CuPy imports for the first operator on an array and a number, as in ``array + 1``."""
    import cupyx.scipy.special  # noqa: F401


def start_context() -> None:
    """Start a thread that sets up the first GPU for this process, while the caller imports modules.

    This takes a quarter of a second. Does nothing without a GPU; `device` says what is missing.
    """
    threading.Thread(target=_retain_context, name="edgemill-gpu", daemon=True).start()


def _retain_context() -> None:
    """Create the primary context of the first device, which CUDA's runtime and CuPy use."""
    with suppress(OSError):
        driver = ctypes.CDLL("libcuda.so.1")
        first, context = ctypes.c_int(0), ctypes.c_void_p()
        _cuda.is_set_up = True
        if driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(first), 0):
            _cuda.is_set_up = False
        else:
            driver.cuDevicePrimaryCtxRetain(ctypes.byref(context), first)


def _none(missing: str) -> Device:
    return Device("", 0, 0, missing)


def on_host(array: Any) -> bool:
    """Whether the array is in host memory."""
    return isinstance(array, np.ndarray)


def module_of(array: Any) -> Any:
    """The module with functions for the array: NumPy, or CuPy.

    NumPy's functions accept arrays of CuPy, too. But the first call of an element-wise one, such as `numpy.minimum`,
    makes CuPy import SciPy, which takes 0.25 s.
    """
    return sys.modules["cupy"] if type(array).__module__.partition(".")[0] == "cupy" else np


def to_device(array: AnyArray) -> Any:
    """The array in GPU memory; the array itself if it is there."""
    from ..gpu.arrays.transfer import to_device

    return to_device(array)


def to_host(array: Any) -> AnyArray:
    """The array in host memory; the array itself if it is there."""
    if on_host(array):
        return array
    from ..gpu.arrays.transfer import to_host

    return to_host(array)


def copy_to_host(array: Any, found: AnyArray) -> None:
    """Copy an array [n] to `found` [n], which is contiguous in host memory, by all threads if the array is on a GPU."""
    if on_host(array):
        found[:] = array
        return
    from ..gpu.arrays.transfer import copy_by_threads
    from .threads import cores

    copy_by_threads(array, found, cores())


def finished_to_host(array: Any) -> AnyArray:
    """The array [n] in host memory, copied while kernels of other threads run; the array itself if it is there.

    Kernels that write to it must have ended.
    """
    if on_host(array):
        return array
    from ..gpu.arrays.transfer import finished_to_host

    return finished_to_host(array)


def finished_joined(pieces: Sequence[Any]) -> NDArray[np.uint8]:
    """The bytes of all pieces, one after the other, in host memory, copied while kernels of other threads run.

    A piece is a bytes object, or an array of uint8 whose kernels have ended. The bytes are valid until this thread
    makes the next copy from a GPU.
    """
    if all(isinstance(own, bytes) or on_host(own) for own in pieces):
        return np.concatenate([np.frombuffer(own, np.uint8) for own in pieces])
    from ..gpu.arrays.transfer import finished_joined

    return finished_joined(pieces)


def synchronize() -> None:
    """Wait for the GPU kernels that this thread has started, and raise their errors."""
    from ..gpu.arrays.transfer import synchronize

    synchronize()


def free_bytes() -> int:
    """Bytes that arrays can still take on the GPU: free on the device, or unused in CuPy's default pool."""
    from ..gpu.arrays.transfer import free_bytes

    return free_bytes()


def pooled_memory() -> AbstractContextManager[None]:
    """Within the context this thread's GPU arrays come from a memory pool; see `gpu.runtime.memory`.

    Does nothing in a process that has no GPU or has not called `device`.
    """
    if not _has_gpu():
        return nullcontext()
    from ..gpu.runtime.memory import pooled_memory

    return pooled_memory()


@contextmanager
def releasing_pool() -> Iterator[None]:
    """At the end of the context, release the memory that the pool of `pooled_memory` does not use."""
    try:
        yield
    finally:
        if _has_gpu():
            from ..gpu.runtime.memory import release_pool

            release_pool()


def _has_gpu() -> bool:
    return device.cache_info().currsize > 0 and not device().missing


def fatal_cuda_error(error: BaseException) -> BaseException | None:
    """The CUDA error among the causes of `error` after which this process cannot use its GPU; None if there is none.

    Errors are recognised by the text of CuPy's CUDARuntimeError and CUDADriverError, which errors of CUB contain too.
    """
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, RuntimeError) and _FATAL.search(str(error)):
            return error
        error = error.__cause__ or error.__context__ or error
    return None


def trim() -> None:
    """Release the unused memory of CuPy's pool to the driver if it is a large share of the GPU's memory.

    The pool keeps the memory of deleted arrays. UCX receives into memory from the driver, outside of the pool.
    """
    from ..gpu.arrays.transfer import trim

    trim(device().memory_bytes)
