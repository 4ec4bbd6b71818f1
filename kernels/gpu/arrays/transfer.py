"""Copies between host and device through pinned buffers. Each thread has its own buffers and its own stream.

A copy from pinned memory runs at the full speed of the bus (55 GB/s on an H200 host, 10 GB/s from pageable memory), at
the same time as other copies and kernels. Pinning is slow, 0.3 s a GiB, so each thread keeps two small buffers: the CPU
fills or empties one while the other is copied.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import cupy
import numpy as np

BUFFER_BYTES = 8 * 2**20
MIN_BYTES = 2**18
"""CuPy copies smaller arrays."""
PART_BYTES = 2**26
"""Bytes that one of several threads copies at a time."""
TRIM_AT = 0.1
"""`trim` empties CuPy's pool if the pool keeps more than this share of the device's memory unused. UCX needs memory on
the device too.
"""


class _Lane(threading.local):
    """Buffers and stream of one thread."""

    def __init__(self) -> None:
        self.device = -1

    def ready(self) -> _Lane:
        """The lane, with buffers and stream on the current device."""
        device = cupy.cuda.runtime.getDevice()
        if device != self.device:
            self.stream = cupy.cuda.Stream(non_blocking=True)
            self.pinned = [cupy.cuda.alloc_pinned_memory(BUFFER_BYTES) for _ in range(2)]
            self.buffers = [np.frombuffer(memory, np.uint8, BUFFER_BYTES) for memory in self.pinned]
            self.done = [cupy.cuda.Event(disable_timing=True) for _ in range(2)]
            self.device = device
        return self


_lane = _Lane()


def own_stream() -> Any:
    """The stream of this thread. As a context, kernels run in it beside those of other threads."""
    return _lane.ready().stream


def to_device(array: Any) -> Any:
    """The array in the GPU's memory; the array itself if it is there."""
    if isinstance(array, cupy.ndarray) or array.nbytes < MIN_BYTES or array.ndim != 1:
        return cupy.asarray(array)
    lane, found = _lane.ready(), cupy.empty(array.shape, array.dtype)
    # The memory may have belonged to another array, and kernels that read that array may still be queued.
    lane.stream.wait_event(cupy.cuda.get_current_stream().record())
    _fill(lane, np.ascontiguousarray(array).view(np.uint8), found.data.ptr)
    for done in lane.done:
        cupy.cuda.get_current_stream().wait_event(done)
    return found


def to_device_by_threads(array: Any, threads: int) -> Any:
    """As `to_device`, by several threads; waits until the copy is made."""
    parts = _parts(array)
    if len(parts) < 2:
        alone = to_device(array)
        synchronize()
        return alone
    found, device = cupy.empty(array.shape, array.dtype), cupy.cuda.Device()
    source, free = np.ascontiguousarray(array).view(np.uint8), cupy.cuda.get_current_stream().record()

    def fill(part: slice) -> None:
        with device:
            lane = _lane.ready()
            lane.stream.wait_event(free)
            _fill(lane, source[part], found.data.ptr + part.start)
            lane.stream.synchronize()

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, parts))
    return found


def to_host(array: Any) -> Any:
    """The array in host memory."""
    if array.nbytes < MIN_BYTES or array.ndim != 1:
        return wait_for(array)
    lane, source = _lane.ready(), cupy.ascontiguousarray(array)
    lane.stream.wait_event(cupy.cuda.get_current_stream().record())
    return _copied(lane, source)


def to_host_by_threads(array: Any, threads: int) -> Any:
    """As `to_host`, by several threads: new pages of memory cost more than the copy, and threads share that cost."""
    if array.nbytes < PART_BYTES or array.ndim != 1:
        return to_host(array)
    found = np.empty(array.shape, array.dtype)
    copy_by_threads(array, found, threads)
    return found


def copy_by_threads(array: Any, found: Any, threads: int) -> None:
    """Copy an array of the device to `found`, which is contiguous in host memory, by several threads."""
    source, target, device = cupy.ascontiguousarray(array), found.view(np.uint8), cupy.cuda.Device()
    synchronize()

    def read(part: slice) -> None:
        with device:
            _read(_lane.ready(), source.data.ptr + part.start, target[part])

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(read, _parts(source)))


def _parts(array: Any) -> list[slice]:
    """Parts, in bytes, of an array of one dimension that threads copy side by side."""
    size = array.nbytes if array.ndim == 1 else 0
    return [slice(at, min(at + PART_BYTES, size)) for at in range(0, size, PART_BYTES)]


def wait_for(array: Any) -> Any:
    """A small array in host memory, once the kernels of the current stream have ended.

    If a copy waited for a long kernel, as in `array.get()`, the CUDA driver would hold up the copies of other threads.
    """
    synchronize()
    return array.get()


def finished_to_host(array: Any) -> Any:
    """The array in host memory, without waiting for running kernels. All that write to the array must have ended.

    The array has one dimension and is contiguous.
    """
    return _copied(_lane.ready(), array)


def finished_joined(pieces: Sequence[Any]) -> Any:
    """The bytes of all pieces in host memory, as `finished_to_host` copies. They are valid until this thread makes the
    next copy.

    A piece is an array of bytes on the device, or a bytes object. No memory is taken for up to BUFFER_BYTES: new pages
    of memory would cost more than the copy.
    """
    lane, at, size = _lane.ready(), 0, sum(map(len, pieces))
    if size > BUFFER_BYTES:
        whole = [np.frombuffer(own, np.uint8) if isinstance(own, bytes) else _copied(lane, own) for own in pieces]
        return np.concatenate(whole)
    for own in pieces:
        if isinstance(own, bytes):
            lane.buffers[0][at : at + len(own)] = np.frombuffer(own, np.uint8)
        elif len(own):
            kind = cupy.cuda.runtime.memcpyDeviceToHost
            cupy.cuda.runtime.memcpyAsync(lane.pinned[0].ptr + at, own.data.ptr, len(own), kind, lane.stream.ptr)
        at += len(own)
    lane.stream.synchronize()
    return lane.buffers[0][:size]


def _copied(lane: _Lane, source: Any) -> Any:
    """A copy of a contiguous array in host memory, made by the stream of the lane."""
    found = np.empty(source.shape, source.dtype)
    _read(lane, source.data.ptr, found.view(np.uint8))
    return found


def _fill(lane: _Lane, source: Any, pointer: int) -> None:
    """Copy bytes of host memory to the device, by the stream of the lane. Returns before the last copies have ended."""
    for turn, at in enumerate(range(0, source.nbytes, BUFFER_BYTES)):
        size, slot = min(BUFFER_BYTES, source.nbytes - at), turn % 2
        lane.done[slot].synchronize()
        lane.buffers[slot][:size] = source[at : at + size]
        kind = cupy.cuda.runtime.memcpyHostToDevice
        cupy.cuda.runtime.memcpyAsync(pointer + at, lane.pinned[slot].ptr, size, kind, lane.stream.ptr)
        lane.done[slot].record(lane.stream)


def _read(lane: _Lane, pointer: int, target: Any) -> None:
    """Copy bytes of the device to host memory, by the stream of the lane."""
    pending: tuple[int, int, int] | None = None
    for turn, at in enumerate(range(0, target.nbytes, BUFFER_BYTES)):
        size, slot = min(BUFFER_BYTES, target.nbytes - at), turn % 2
        kind = cupy.cuda.runtime.memcpyDeviceToHost
        cupy.cuda.runtime.memcpyAsync(lane.pinned[slot].ptr, pointer + at, size, kind, lane.stream.ptr)
        lane.done[slot].record(lane.stream)
        if pending is not None:
            _empty_buffer(lane, target, *pending)
        pending = (slot, at, size)
    if pending is not None:
        _empty_buffer(lane, target, *pending)


def synchronize() -> None:
    """Wait until the current stream has finished."""
    cupy.cuda.get_current_stream().synchronize()


def free_bytes() -> int:
    """Bytes that are free on the current device or unused in CuPy's default pool."""
    free, _ = cupy.cuda.runtime.memGetInfo()
    return int(free) + int(cupy.get_default_memory_pool().free_bytes())


def trim(memory_bytes: int) -> None:
    """Empty CuPy's pool if it keeps more than `TRIM_AT` of the device's memory unused."""
    pool = cupy.get_default_memory_pool()
    if pool.free_bytes() > TRIM_AT * memory_bytes:
        pool.free_all_blocks()


def _empty_buffer(lane: _Lane, target: Any, slot: int, at: int, size: int) -> None:
    lane.done[slot].synchronize()
    target[at : at + size] = lane.buffers[slot][:size]
