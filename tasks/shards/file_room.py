"""Arrays in files, so that a group of shards may be larger than memory: see `kernels.cpu.shards.room`."""

from __future__ import annotations

import errno
import mmap
import os
import tempfile
import threading
import weakref
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import NO_SPACE, OutOfRoom

EVERY = 0.02
"""Seconds between two looks at how much is resident."""


class FileRoom:
    """Arrays in temporary files of a folder, as a context; at most about `resident` bytes of them take memory.

    The files have no names, so that none is left behind however the process ends. A thread looks at what is resident
    and unmaps all pages once it is too much (``MADV_DONTNEED``): they stay in the kernel's page cache while there is
    room, and are read from the disk after that. No array changes by it. What is resident is measured for the process,
    above what it had just after pages were unmapped last: letters and results that are mapped are not counted. Linux
    only.
    """

    def __init__(self, folder: Path, resident: int) -> None:
        self._folder, self._resident = folder, resident
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._watch = threading.Thread(target=self._look, name="edgemill-file-room", daemon=True)
        self.trims = 0
        """How often pages were unmapped."""
        self.given_bytes = 0
        """Of all arrays."""
        self.mapped_bytes = 0
        """What came into memory by reading or writing, when the context is left: the same page as often as it came."""
        self._seen = self._others = _shared_bytes()
        """Most that was resident since pages were unmapped, and what is of others."""

    def __enter__(self) -> FileRoom:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop to look. Arrays stay valid, and their space is free again when they are gone."""
        self._closed.set()
        self._watch.join()
        self._count(_shared_bytes())

    def array(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """See `Room.array`. Raises OutOfRoom where the folder's file system is full."""
        size = length * np.dtype(dtype).itemsize
        if not size:
            return np.empty(0, dtype)
        try:
            with tempfile.TemporaryFile(dir=self._folder, prefix=".edgemill-") as file:
                # Without its blocks, a full disk would end the process by a signal when a page is written.
                os.posix_fallocate(file.fileno(), 0, size)
                mapped = mmap.mmap(file.fileno(), size)
        except OSError as error:
            if error.errno in (*NO_SPACE, errno.ENOMEM, errno.EFBIG):
                raise OutOfRoom(f"no room for {size:,} bytes of shards in {self._folder}: {error.strerror}") from error
            raise
        with self._lock:
            self._maps.add(mapped)
            self.given_bytes += size
        return np.frombuffer(mapped, dtype)

    def at_random(self, array: NDArray[Any]) -> None:
        """See `Room.at_random`."""
        base: Any = array.base  # NumPy keeps the view that it has of the map
        if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap):
            base.obj.madvise(mmap.MADV_RANDOM)

    def _look(self) -> None:
        while not self._closed.wait(EVERY):
            now = _shared_bytes()
            self._seen, self._others = max(self._seen, now), min(self._others, now)
            if now - self._others > self._resident:
                with self._lock:
                    maps = list(self._maps)
                self._unmap(maps)
                self.trims += 1
                self._count(now)
                self._seen = self._others = _shared_bytes()

    def _unmap(self, maps: Sequence[mmap.mmap]) -> None:
        for mapped in maps:
            mapped.madvise(mmap.MADV_DONTNEED)

    def _count(self, now: int) -> None:
        self.mapped_bytes += max(self._seen, now) - self._others


def _shared_bytes() -> int:
    """Resident bytes of this process that are mapped from files or shared."""
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
