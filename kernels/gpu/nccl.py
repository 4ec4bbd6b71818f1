"""Words between GPUs through NCCL, with its kernels beside one that waits for them.

NVIDIA's Collective Communications Library (docs.nvidia.com/deeplearning/nccl), as CuPy has it.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import cupy
import numpy as np
from cupy.cuda import nccl, runtime
from numpy.typing import NDArray

SPARE = 4
"""Multiprocessors that a kernel which waits for NCCL leaves to its kernels."""
_SMALL_BLOCKS = {"NCCL_NTHREADS": "256", "NCCL_MAX_CTAS": "1"}
"""NCCL's blocks: few enough, and so small that one runs beside a block of the other kernel."""
_EAGER_WORDS = 4096
"""What every rank tells all at once: numbers, and its words where they have room."""
_WORD = 4

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

    Words that one sends are at most `most_common` to all, and `most_own` to each.
    """

    def __init__(self, identity: bytes, rank: int, count: int, most_common: int, most_own: int) -> None:
        self.rank, self.count = rank, count
        self._device = runtime.getDevice()
        self._stream = cupy.cuda.Stream(non_blocking=True)
        each = most_common + most_own
        # All of it now: an allocation could wait for the kernel that waits for these words.
        self._sent, self._came = cupy.empty(_EAGER_WORDS, np.uint32), cupy.empty((count, _EAGER_WORDS), np.uint32)
        self._sending, self._coming = cupy.empty((count, each), np.uint32), cupy.empty((count, each), np.uint32)
        self._eager, self._eager_came = _pinned(_EAGER_WORDS), _pinned(count * _EAGER_WORDS).reshape(count, -1)
        self._letters = _pinned(count * each).reshape(count, -1)
        for name, value in _SMALL_BLOCKS.items():
            os.environ.setdefault(name, value)
        self._communicator: Any = nccl.NcclCommunicator(count, identity, rank)
        # NCCL connects with the first words, which another kernel could keep from it.
        nothing = [np.empty(0, np.uint32)] * count
        for words in (0, min(most_common, _EAGER_WORDS)):
            self.exchange(0, np.zeros(words, np.uint32), nothing)

    def exchange(self, number: int, common: Words, own: Sequence[Words]) -> list[tuple[int, Words, Words]]:
        """Send `common` to all, and `own[q]` to rank q; gives their number, and words to all and to this, by rank.

        What is given may be of memory that is not pinned; what comes is valid until the next call.
        """
        sizes = [number, len(common), *map(len, own)]
        eager = sum(sizes[1:]) + len(sizes) <= _EAGER_WORDS
        self._eager[: len(sizes)] = sizes
        if eager:
            np.concatenate([common, *own], out=self._eager[len(sizes) : len(sizes) + sum(sizes[1:])])
        with cupy.cuda.Device(self._device):
            self._copy(self._sent.data.ptr, self._eager)
            stream = self._stream.ptr
            self._communicator.allGather(
                self._sent.data.ptr, self._came.data.ptr, _EAGER_WORDS, nccl.NCCL_UINT32, stream
            )
            self._copy_back(self._eager_came, self._came.data.ptr)
            self._stream.synchronize()
            told = [row[: 2 + self.count].tolist() for row in self._eager_came]
            large = [q for q, (_, *lengths) in enumerate(told) if sum(lengths) + 2 + self.count > _EAGER_WORDS]
            if large:
                self._exchange_large(common, own, told, large)
        return [
            (sizes[0], *(self._from(q, sizes, q in large) if q != self.rank else (common, own[q])))
            for q, sizes in enumerate(told)
        ]

    def _exchange_large(
        self, common: Words, own: Sequence[Words], told: Sequence[Sequence[int]], large: Sequence[int]
    ) -> None:
        """The words of those for whom there was no room."""
        others = [q for q in range(self.count) if q != self.rank]
        if self.rank in large:
            for q in others:
                self._copy(self._sending[q].data.ptr, common)
                self._copy(self._sending[q].data.ptr + _WORD * len(common), own[q])
        stream = self._stream.ptr
        nccl.groupStart()
        for q in others:
            if self.rank in large and len(common) + len(own[q]):
                size = len(common) + len(own[q])
                self._communicator.send(self._sending[q].data.ptr, size, nccl.NCCL_UINT32, q, stream)
            size = told[q][1] + told[q][2 + self.rank]
            if q in large and size:
                self._communicator.recv(self._coming[q].data.ptr, size, nccl.NCCL_UINT32, q, stream)
        nccl.groupEnd()
        for q in set(others) & set(large):
            size = told[q][1] + told[q][2 + self.rank]
            self._copy_back(self._letters[q, :size], self._coming[q].data.ptr)
        self._stream.synchronize()

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

    def abort(self) -> None:
        """End what waits for other ranks; for any thread."""
        with cupy.cuda.Device(self._device):
            self._communicator.abort()

    def close(self) -> None:
        """Let go of the others; no exchange is under way."""
        with cupy.cuda.Device(self._device):
            self._communicator.destroy()


def _pinned(words: int) -> Words:
    memory = cupy.cuda.alloc_pinned_memory(_WORD * words)
    return np.frombuffer(memory, np.uint32, words)
