"""Freed memory stays with the process, so that the next array takes no new pages."""

from __future__ import annotations

import ctypes
from contextlib import suppress

KEPT_BYTES = 2**28
"""Largest arrays in host memory, and most freed memory, that the C library of a process with a GPU keeps for reuse."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3
"""Parameters of `mallopt` of the GNU C library (malloc.h)."""


def keep_freed_memory() -> None:
    """Have the C library of this process keep KEPT_BYTES of freed memory. Does nothing with another C library.

    By default arrays of 128 KiB to 32 MiB and more come from the system anew each time. A page takes it up to ten
    microseconds on a virtual machine, and threads of a process wait for each other meanwhile.
    """
    with suppress(OSError, AttributeError):
        library = ctypes.CDLL(None)
        for parameter in (_TRIM_THRESHOLD, _MMAP_THRESHOLD):
            library.mallopt(parameter, KEPT_BYTES)
