"""Arrays in temporary files, so that a group of shards may exceed memory; see `kernels.runtime.sizes`."""

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

CHECK_SECONDS = 0.02
"""Time between two checks of the resident size."""
_READINGS = 3
"""Maximum number of times that pages are unmapped in a row."""


class FileAllocator:
    """Allocates arrays in temporary files of a folder; a context manager. About `resident` bytes of them at most are in
    memory.

    The files have no names, so that none is left behind however the process ends. A thread checks the resident size and
    unmaps all pages when it exceeds the limit (``MADV_DONTNEED``). Unmapped pages stay in the page cache while memory
    allows it; later they are read from the disk. The content of arrays does not change. The resident size is measured
    for the process, relative to its size just after the last unmapping: other mapped files, such as packets, are not
    counted. Linux only.
    """

    def __init__(self, folder: Path, resident: int) -> None:
        self._folder, self._resident = folder, resident
        self._maps: weakref.WeakSet[mmap.mmap] = weakref.WeakSet()
        self._lock, self._closed = threading.Lock(), threading.Event()
        self._watch = threading.Thread(target=self._watch_resident, name="edgemill-file-allocator", daemon=True)
        self.trims = 0
        """Number of times that pages were unmapped."""
        self.allocated_bytes = 0
        """Size of all arrays."""
        self.mapped_bytes = 0
        """Bytes of pages mapped by reads and writes; each mapping of a page counts. Complete when the context is left.
        """
        self._seen = self._others = _shared_bytes()
        """Largest resident size since the last unmapping, and the part of it that belongs to other files."""

    def __enter__(self) -> FileAllocator:
        self._watch.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Stop the thread. Arrays stay valid; the space of an array is freed when it is deleted."""
        self._closed.set()
        self._watch.join()
        self._count(_shared_bytes())

    def allocate(self, length: int, dtype: type[Any]) -> NDArray[Any]:
        """See `Allocator.allocate`. Raises OutOfRoom if the folder's file system is full."""
        size = length * np.dtype(dtype).itemsize
        if not size:
            return np.empty(0, dtype)
        try:
            with tempfile.TemporaryFile(dir=self._folder, prefix=".edgemill-") as file:
                # With a sparse file, a full disk would end the process by a signal when a page is written.
                os.posix_fallocate(file.fileno(), 0, size)
                mapped = mmap.mmap(file.fileno(), size)
        except OSError as error:
            if error.errno in (*NO_SPACE, errno.ENOMEM, errno.EFBIG):
                raise OutOfRoom(f"no space for {size:,} bytes of shards in {self._folder}: {error.strerror}") from error
            raise
        with self._lock:
            self._maps.add(mapped)
            self.allocated_bytes += size
        return np.frombuffer(mapped, dtype)

    def watch(self, array: NDArray[Any]) -> None:
        """Unmap the pages of another array as well, if it is mapped from a file. Nothing may write to that array."""
        base: Any = array
        while base is not None and not isinstance(base, mmap.mmap):
            base = base.obj if isinstance(base, memoryview) else getattr(base, "base", None)
        if base is not None:
            with self._lock:
                self._maps.add(base)

    def advise_random(self, array: NDArray[Any]) -> None:
        """See `Allocator.advise_random`."""
        base: Any = array.base  # NumPy keeps the view of the map
        if isinstance(base, memoryview) and isinstance(base.obj, mmap.mmap):
            base.obj.madvise(mmap.MADV_RANDOM)

    def _watch_resident(self) -> None:
        while not self._closed.wait(CHECK_SECONDS):
            now = _shared_bytes()
            self._seen, self._others = max(self._seen, now), min(self._others, now)
            if now - self._others > self._resident:
                with self._lock:
                    maps = list(self._maps)
                self._count(now)
                self._seen = self._others = self._unmap(maps)
                self.trims += 1

    def _unmap(self, maps: Sequence[mmap.mmap]) -> int:
        """Unmap the pages of all maps. Returns the resident bytes of other files.

        Another thread may map pages between the unmapping and the reading, and these pages would then count as those of
        other files. So pages are unmapped again, up to _READINGS times, while the resident size has grown by more than
        half of the limit; other files may be the cause of that, too.
        """
        found: list[int] = []
        while len(found) < _READINGS:
            for mapped in maps:
                mapped.madvise(mmap.MADV_DONTNEED)
            found.append(_shared_bytes())
            if found[-1] - self._others <= self._resident // 2:
                break
        return min(found)

    def _count(self, now: int) -> None:
        self.mapped_bytes += max(self._seen, now) - self._others


def _shared_bytes() -> int:
    """Resident bytes of this process that are mapped from files or shared."""
    return int(Path("/proc/self/statm").read_text().split()[2]) * mmap.PAGESIZE
