"""Whether this process has a GPU, and the way there and back for arrays."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from .graph import AnyArray
from .peers import this_machine

LEAST_CAPABILITY = 8
"""Compute capability, major number, of the first GPUs with the shared memory that peeling and cascades take."""
_BROKEN = re.compile(
    "cudaError(IllegalAddress|LaunchTimeout|ContextIsDestroyed|Assert|HardwareStackError|IllegalInstruction"
    "|MisalignedAddress|InvalidAddressSpace|InvalidPc|LaunchFailure|ECCUncorrectable|NvlinkUncorrectable)"
    "|CUDA_ERROR_(ILLEGAL_ADDRESS|LAUNCH_TIMEOUT|CONTEXT_IS_DESTROYED|ASSERT|HARDWARE_STACK_ERROR|ILLEGAL_INSTRUCTION"
    "|MISALIGNED_ADDRESS|INVALID_ADDRESS_SPACE|INVALID_PC|LAUNCH_FAILED|ECC_UNCORRECTABLE|NVLINK_UNCORRECTABLE)"
)
"""Errors after which CUDA answers nothing but the same error, until the process is started anew."""


@dataclass(frozen=True)
class Device:
    """What this process may compute on beside the CPU."""

    name: str
    """Of the GPU; empty if there is none."""
    memory_bytes: int
    """Of the GPU; 0 if there is none."""
    count: int
    """GPUs that this process sees."""
    lack: str
    """Why there is none, and what to do; empty if there is one."""
    machine: str = ""
    """The host it is in; see `peers.this_machine`."""
    bus: str = ""
    """Where the GPU is on the machine's bus: no two have one place."""


@cache
def device() -> Device:
    """The first GPU that this process sees. Needs no package to find out that there is none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return _none("no CUDA driver (libcuda.so.1)")
    found = ctypes.c_int(0)
    if driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(found)) or not found.value:
        return _none("no CUDA device that this process may use")
    try:
        import cupy
    except ImportError:
        return _none("no CuPy: install edgemill[cu13] or edgemill[cu12], as the driver has it")
    runtime = cupy.cuda.runtime
    properties = runtime.getDeviceProperties(0)
    if properties["major"] < LEAST_CAPABILITY:
        return _none(
            f"{properties['name'].decode()} has compute capability {properties['major']}.{properties['minor']}, and "
            f"the kernels need {LEAST_CAPABILITY}.0 or more"
        )
    return Device(
        properties["name"].decode(),
        int(properties["totalGlobalMem"]),
        found.value,
        "",
        this_machine(),
        runtime.deviceGetPCIBusId(0),
    )


def _none(lack: str) -> Device:
    return Device("", 0, 0, lack)


def on_host(array: Any) -> bool:
    """Whether the array lies in the host's memory."""
    return isinstance(array, np.ndarray)


def to_device(array: AnyArray) -> Any:
    """The array in the GPU's memory."""
    from .gpu import to_device

    return to_device(array)


def to_host(array: Any) -> AnyArray:
    """The array in the host's memory; itself if it is there."""
    if on_host(array):
        return array
    from .gpu import to_host

    return to_host(array)


def synchronize() -> None:
    """Wait for the kernels that this thread has started, and raise what went wrong in them."""
    from .gpu import synchronize

    synchronize()


def own_memory() -> AbstractContextManager[None]:
    """Within it this thread's arrays on the GPU come from a pool, as `gpu.own_memory` has it. Nothing happens in a
    process that has not looked for a GPU, or has none.
    """
    if not _has_gpu():
        return nullcontext()
    from .gpu import own_memory

    return own_memory()


@contextmanager
def memory_given_back() -> Iterator[None]:
    """At its end the pool of `own_memory` keeps nothing that the process could have used."""
    try:
        yield
    finally:
        if _has_gpu():
            from .gpu import give_back

            give_back()


def _has_gpu() -> bool:
    return device.cache_info().currsize > 0 and not device().lack


def what_broke(error: BaseException) -> BaseException | None:
    """The error of CUDA that led to `error` and left this process without a GPU; None if there is no such.

    CuPy's CUDARuntimeError and CUDADriverError are known by their text, which others, such as those of CUB, have too.
    """
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        if isinstance(error, RuntimeError) and _BROKEN.search(str(error)):
            return error
        error = error.__cause__ or error.__context__ or error
    return None


def trim() -> None:
    """Give the GPU's unused memory back to its driver where much of it is, for those who take theirs from there.

    CuPy's pool keeps what arrays leave, and what UCX receives lies outside of it.
    """
    from .gpu import trim

    trim(device().memory_bytes)
