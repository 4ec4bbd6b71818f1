"""Words between GPUs through NCCL, with its kernels beside one that waits for them.

NVIDIA's Collective Communications Library (docs.nvidia.com/deeplearning/nccl), as CuPy has it. While a kernel waits for
what NCCL brings, nothing may be called that waits for kernels in turn: all memory, streams, connections and kernels of
NCCL are made before. NCCL's kernels need multiprocessors that the other kernel leaves empty.
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

SPARE = 4
"""Multiprocessors that a kernel which waits for NCCL leaves to its kernels."""
_LIMITS = {
    "NCCL_MAX_CTAS": str(SPARE),
    "NCCL_MAX_P2P_NCHANNELS": str(SPARE),
    # Blocks of one cluster run in one part of the GPU, where there may be too few empty multiprocessors.
    "NCCL_CGA_CLUSTER_SIZE": "0",
}
"""What NCCL's kernels may take, in the variables that NCCL reads: CuPy passes it no such settings otherwise."""
_FIRST = -5
"""Priority of the stream: the highest there is. Streams of another priority never queue behind each other's kernels."""
_EAGER_WORDS = 4096
"""What every rank tells all at once: numbers, and its words where they have room."""
_WORD = 4
_ABORT_SECONDS = 5.0
"""How long an abort waits for a call of NCCL that another thread makes."""

Words = NDArray[np.uint32]


def lack() -> str:
    """Why there is no NCCL here; empty if there is."""
    if not nccl.available:
        return "CuPy finds no NCCL: install nvidia-nccl-cu13 or nvidia-nccl-cu12, as the driver has it"
    return ""


def new_id() -> bytes:
    """An identity of ranks that are to meet; one of them makes it for all."""
    return bytes(nccl.get_unique_id())


class Ranks:
    """One of `count` processes' GPUs that NCCL connects; all make theirs at once with the same identity.

    Words that one sends are at most `most_common` to all, and `most_own` to each. Raises RuntimeError.
    """

    def __init__(self, identity: bytes, rank: int, count: int, most_common: int, most_own: int) -> None:
        self.rank, self.count = rank, count
        self._device = runtime.getDevice()
        self._stream = cupy.cuda.Stream(non_blocking=True, priority=_FIRST)
        self._calling = Lock()
        self._others = [q for q in range(count) if q != rank]
        each = most_common + most_own
        self._sent, self._came = cupy.empty(_EAGER_WORDS, np.uint32), cupy.empty((count, _EAGER_WORDS), np.uint32)
        self._sending, self._coming = cupy.empty((count, each), np.uint32), cupy.empty((count, each), np.uint32)
        self._eager, self._eager_came = _pinned(_EAGER_WORDS), _pinned(count * _EAGER_WORDS).reshape(count, -1)
        self._letters = _pinned(count * each).reshape(count, -1)
        cupy.cuda.get_current_stream().synchronize()
        with _variables(_LIMITS):
            self._communicator: Any = nccl.NcclCommunicator(count, identity, rank)
            self._connect(most_common, most_own)

    def _connect(self, most_common: int, most_own: int) -> None:
        """Have NCCL connect, and load its kernels, by words of every kind of size that will be sent."""
        sizes = [0, *(size for size in (_EAGER_WORDS, 2**14, 2**17) if size < most_common), most_common]
        own = [np.zeros(most_own, np.uint32)] * self.count
        for size in sizes:
            self.exchange(
                0, np.zeros(size, np.uint32), [words[: size if size < most_common else None] for words in own]
            )

    def exchange(self, number: int, common: Words, own: Sequence[Words]) -> list[tuple[int, Words, Words]]:
        """Send `common` to all, and `own[q]` to rank q; gives their number, and words to all and to this, by rank.

        What is given may be of memory that is not pinned. What comes is valid until the next call, as is what is given.
        """
        sizes = [number, len(common), *map(len, own)]
        self._eager[: len(sizes)] = sizes
        if not self._is_large(sizes[1:]):
            np.concatenate([common, *own], out=self._eager[len(sizes) : len(sizes) + sum(sizes[1:])])
        with cupy.cuda.Device(self._device):
            with self._calling:
                self._copy(self._sent.data.ptr, self._eager)
                self._communicator.allGather(
                    self._sent.data.ptr, self._came.data.ptr, _EAGER_WORDS, nccl.NCCL_UINT32, self._stream.ptr
                )
                self._copy_back(self._eager_came, self._came.data.ptr)
            self._stream.synchronize()
            told = [row[: 2 + self.count].tolist() for row in self._eager_came]
            large = [q for q, (_, *lengths) in enumerate(told) if self._is_large(lengths)]
            if large:
                with self._calling:
                    self._exchange_large(common, own, told, large)
                self._stream.synchronize()
        return [
            (row[0], *(self._from(q, row, q in large) if q != self.rank else (common, own[q])))
            for q, row in enumerate(told)
        ]

    def _is_large(self, lengths: Sequence[int]) -> bool:
        """Whether words of so many lengths have no room beside the numbers."""
        return 1 + len(lengths) + sum(lengths) > _EAGER_WORDS

    def _exchange_large(
        self, common: Words, own: Sequence[Words], told: Sequence[Sequence[int]], large: Sequence[int]
    ) -> None:
        """The words of those for whom there was no room."""
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
            size = told[q][1] + told[q][2 + self.rank]
            if q in large and size:
                self._communicator.recv(self._coming[q].data.ptr, size, nccl.NCCL_UINT32, q, stream)
        nccl.groupEnd()
        for q in set(self._others) & set(large):
            size = told[q][1] + told[q][2 + self.rank]
            self._copy_back(self._letters[q, :size], self._coming[q].data.ptr)

    def _from(self, sender: int, sizes: Sequence[int], large: bool) -> tuple[Words, Words]:
        """The words of one rank to all, and to this one."""
        _, common, *own = sizes
        if large:
            letter = self._letters[sender]
            return letter[:common], letter[common : common + own[self.rank]]
        letter = self._eager_came[sender, len(sizes) :]
        start = common + sum(own[: self.rank])
        return letter[:common], letter[start : start + own[self.rank]]

    def _copy(self, to: int, words: Words) -> None:
        if words.nbytes:
            runtime.memcpyAsync(to, words.ctypes.data, words.nbytes, runtime.memcpyHostToDevice, self._stream.ptr)

    def _copy_back(self, words: Words, begin: int) -> None:
        if words.nbytes:
            runtime.memcpyAsync(words.ctypes.data, begin, words.nbytes, runtime.memcpyDeviceToHost, self._stream.ptr)

    def check(self) -> None:
        """Raises RuntimeError if NCCL has met with an error since; for any thread."""
        self._communicator.check_async_error()

    def abort(self) -> None:
        """End what waits for other ranks; for any thread. Waits until no other kernel of the GPU runs."""
        got = self._calling.acquire(timeout=_ABORT_SECONDS)
        try:
            with cupy.cuda.Device(self._device):
                self._communicator.abort()
        finally:
            if got:
                self._calling.release()

    def close(self) -> None:
        """Let go of the others; no exchange is under way."""
        with cupy.cuda.Device(self._device):
            self._communicator.destroy()


@contextmanager
def _variables(values: Mapping[str, str]) -> Iterator[None]:
    """Within it the environment has these values."""
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
