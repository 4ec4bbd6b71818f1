"""Arrays of which few entries are used."""

from __future__ import annotations

import os

import numpy as np
import pytest

from edgemill.kernels.cpu.update.merging import LARGE, sparse_zeros


@pytest.mark.parametrize("count", [0, 1, 1000, LARGE // 8, LARGE])
@pytest.mark.parametrize("dtype", [np.int32, np.int64])
def test_zeros(count: int, dtype: type[np.integer]) -> None:
    """Of one type to the compiler, large or small."""
    array = sparse_zeros(count, dtype)
    assert array.shape == (count,) and array.dtype == dtype and not array.any()
    assert array.flags.c_contiguous and array.flags.aligned and array.flags.writeable
    array[:] = 7
    assert (array == 7).all()


def test_memory_of_few_entries() -> None:
    """A gigabyte with an entry in each two megabytes takes a page for each of them."""

    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = resident()
    array = sparse_zeros(2**28, np.int32)
    array[:: 2**19] = 1
    assert array[:: 2**19].all() and resident() - before < 2**27
