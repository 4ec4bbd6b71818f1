"""The sum of all values of an array.

CuPy compiles two kernels for each kind of reduction and type: 4 seconds for each at the first run on a machine.
"""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..runtime import source

_BLOCK = 512


def total(values: Any) -> int:
    """The sum of the values, which are bool or int32. Waits for the device."""
    found = cupy.zeros(1, np.uint64)
    if len(values):
        kernel = source.kernel(f"arrays/total:total_{values.dtype.name}")
        kernel((source.grid(len(values), _BLOCK),), (_BLOCK,), (values, np.int64(len(values)), found))
    return int(found.view(np.int64)[0])
