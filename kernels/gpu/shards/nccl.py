"""Exchange of words between GPUs through NCCL, while a kernel on the same GPU waits for the words.

NCCL is NVIDIA's Collective Communications Library (docs.nvidia.com/deeplearning/nccl), used through CuPy. While a
kernel waits for words from NCCL, no call may wait for kernels. So all memory, streams, connections and kernels of NCCL
are created before. NCCL's kernels need multiprocessors that the waiting kernel leaves free.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import Lock
from typing import Any

import cupy
import numpy as np
from cupy.cuda import nccl, runtime
from numpy.typing import NDArray

RESERVED_PROCESSORS = 4
"""Number of multiprocessors that a kernel leaves free for NCCL's kernels while it waits for them."""
_LIMITS = {
    "NCCL_MAX_CTAS": str(RESERVED_PROCESSORS),
    "NCCL_MAX_P2P_NCHANNELS": str(RESERVED_PROCESSORS),
    # Blocks of one cluster run in one part of the GPU, which may have too few free multiprocessors.
    "NCCL_CGA_CLUSTER_SIZE": "0",
}
"""Limits of NCCL's kernels, as environment variables that NCCL reads. CuPy has no other way to set them."""
_PRIORITY = -5
"""Priority of the stream, the highest. Kernels on streams of different priorities never queue behind each other."""
_EAGER_WORDS = 4096
"""Number of words that each rank sends to all ranks in the first step: its sizes, and its words if they fit."""
_WORD = 4
_ABORT_SECONDS = 5.0
"""Seconds that an abort waits for a call of NCCL in another thread."""

Words = NDArray[np.uint32]


def missing() -> str:
    """Why NCCL is missing, and what to do; empty if it is available."""
    if not nccl.available:
        return "CuPy finds no NCCL: install nvidia-nccl-cu13 or nvidia-nccl-cu12, as the driver has it"
    return ""


def new_id() -> bytes:
    """A new identity for a set of ranks that NCCL connects. One rank creates the identity for all ranks."""
    return bytes(nccl.get_unique_id())


class Ranks:
    """Rank `rank` of `count` ranks that NCCL connects, on the current GPU. All ranks must be created at the same time,
    with the same identity.

    In an exchange a rank sends at most `max_common_words` words to all ranks, and at most `max_own_words` to each rank
    alone. Raises RuntimeError.
    """

    def __init__(self, identity: bytes, rank: int, count: int, max_common_words: int, max_own_words: int) -> None:
        self.rank, self.count = rank, count
        self._device = runtime.getDevice()
        self._stream = cupy.cuda.Stream(non_blocking=True, priority=_PRIORITY)
        self._call_lock = Lock()
        self._others = [q for q in range(count) if q != rank]
        each = max_common_words + max_own_words
        self._sent, self._received = cupy.empty(_EAGER_WORDS, np.uint32), cupy.empty((count, _EAGER_WORDS), np.uint32)
        self._sending, self._receiving = cupy.empty((count, each), np.uint32), cupy.empty((count, each), np.uint32)
        self._eager, self._eager_received = _pinned(_EAGER_WORDS), _pinned(count * _EAGER_WORDS).reshape(count, -1)
        self._letters = _pinned(count * each).reshape(count, -1)
        cupy.cuda.get_current_stream().synchronize()
        with _variables(_LIMITS):
            self._communicator: Any = nccl.NcclCommunicator(count, identity, rank)
            self._connect(max_common_words, max_own_words)

    def _connect(self, max_common_words: int, max_own_words: int) -> None:
        """Make NCCL connect and load its kernels, by one exchange of each kind of size that will occur."""
        sizes = [0, *(size for size in (_EAGER_WORDS, 2**14, 2**17) if size < max_common_words), max_common_words]
        own = [np.zeros(max_own_words, np.uint32)] * self.count
        for size in sizes:
            self.exchange(
                0, np.zeros(size, np.uint32), [words[: size if size < max_common_words else None] for words in own]
            )

    def exchange(self, number: int, common: Words, own: Sequence[Words]) -> list[tuple[int, Words, Words]]:
        """Send `common` to all ranks and `own[q]` to rank q. Returns for each rank its `number`, its words to all, and
        its words to this rank.

        The arguments may be in memory that is not pinned. The result is valid until the next call.
        """
        sizes = [number, len(common), *map(len, own)]
        self._eager[: len(sizes)] = sizes
        if not self._is_large(sizes[1:]):
            np.concatenate([common, *own], out=self._eager[len(sizes) : len(sizes) + sum(sizes[1:])])
        with cupy.cuda.Device(self._device):
            with self._call_lock:
                self._copy(self._sent.data.ptr, self._eager)
                self._communicator.allGather(
                    self._sent.data.ptr, self._received.data.ptr, _EAGER_WORDS, nccl.NCCL_UINT32, self._stream.ptr
                )
                self._copy_back(self._eager_received, self._received.data.ptr)
            self._stream.synchronize()
            headers = [row[: 2 + self.count].tolist() for row in self._eager_received]
            large = [q for q, (_, *lengths) in enumerate(headers) if self._is_large(lengths)]
            if large:
                with self._call_lock:
                    self._exchange_large(common, own, headers, large)
                self._stream.synchronize()
        return [
            (row[0], *(self._from(q, row, q in large) if q != self.rank else (common, own[q])))
            for q, row in enumerate(headers)
        ]

    def _is_large(self, lengths: Sequence[int]) -> bool:
        """Whether words of these lengths do not fit into the first step."""
        return 1 + len(lengths) + sum(lengths) > _EAGER_WORDS

    def _exchange_large(
        self, common: Words, own: Sequence[Words], headers: Sequence[Sequence[int]], large: Sequence[int]
    ) -> None:
        """The second step: send the words of the ranks whose words did not fit into the first step."""
        if self.rank in large:
            for q in self._others:
                self._copy(self._sending[q].data.ptr, common)
                self._copy(self._sending[q].data.ptr + _WORD * len(common), own[q])
        stream = self._stream.ptr
        nccl.groupStart()
        for q in self._others:
            size = len(common) + len(own[q])
            if self.rank in large and size:
                self._communicator.send(self._sending[q].data.ptr, size, nccl.NCCL_UINT32, q, stream)
            size = headers[q][1] + headers[q][2 + self.rank]
            if q in large and size:
                self._communicator.recv(self._receiving[q].data.ptr, size, nccl.NCCL_UINT32, q, stream)
        nccl.groupEnd()
        for q in set(self._others) & set(large):
            size = headers[q][1] + headers[q][2 + self.rank]
            self._copy_back(self._letters[q, :size], self._receiving[q].data.ptr)

    def _from(self, sender: int, sizes: Sequence[int], large: bool) -> tuple[Words, Words]:
        """The words of one rank to all, and to this rank."""
        _, common, *own = sizes
        if large:
            packet = self._letters[sender]
            return packet[:common], packet[common : common + own[self.rank]]
        packet = self._eager_received[sender, len(sizes) :]
        start = common + sum(own[: self.rank])
        return packet[:common], packet[start : start + own[self.rank]]

    def _copy(self, to: int, words: Words) -> None:
        if words.nbytes:
            runtime.memcpyAsync(to, words.ctypes.data, words.nbytes, runtime.memcpyHostToDevice, self._stream.ptr)

    def _copy_back(self, words: Words, begin: int) -> None:
        if words.nbytes:
            runtime.memcpyAsync(words.ctypes.data, begin, words.nbytes, runtime.memcpyDeviceToHost, self._stream.ptr)

    def check(self) -> None:
        """Raise RuntimeError if NCCL has found an error. Any thread may call this."""
        self._communicator.check_async_error()

    def abort(self) -> None:
        """End all waiting for other ranks. Any thread may call this. Returns when no other kernel of the GPU runs."""
        got = self._call_lock.acquire(timeout=_ABORT_SECONDS)
        try:
            with cupy.cuda.Device(self._device):
                self._communicator.abort()
        finally:
            if got:
                self._call_lock.release()

    def close(self) -> None:
        """Disconnect. No exchange may be running."""
        with cupy.cuda.Device(self._device):
            self._communicator.destroy()


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Set these environment variables within the context."""
    before = {name: os.environ.get(name) for name in values}
    os.environ.update(values)
    try:
        yield
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


def _pinned(words: int) -> Words:
    memory = cupy.cuda.alloc_pinned_memory(_WORD * words)
    return np.frombuffer(memory, np.uint32, words)
