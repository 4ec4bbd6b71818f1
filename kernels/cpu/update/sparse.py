"""Arrays of which few entries are used."""

from __future__ import annotations

import mmap
from contextlib import suppress
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

LARGE = 1 << 22
"""Bytes from which on NumPy asks for huge pages."""


def sparse_zeros(count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Zeros, of which few are read or written, at places far from each other.

    Takes memory in small pages, only where entries are used. NumPy's arrays are in huge pages where the system has
    them: then each entry may take 2 MiB, which are cleared first.
    """
    kind = np.dtype(dtype)
    size = count * kind.itemsize
    if size < LARGE:
        return np.zeros(count, kind)
    memory = mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    with suppress(OSError):  # a system without huge pages
        memory.madvise(mmap.MADV_NOHUGEPAGE)
    return np.frombuffer(memory, kind)
