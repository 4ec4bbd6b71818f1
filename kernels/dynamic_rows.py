"""Kernels of sorted rows that change by batches, selected by array type."""

from __future__ import annotations

from typing import Any

import numpy as np


def dynamic_rows(array: object) -> Any:
    """The module `cpu.update.dynamic_rows`, or its counterpart for arrays on GPUs. Raises TypeError for others."""
    if isinstance(array, np.ndarray):
        from .cpu.update import dynamic_rows as cpu

        return cpu
    if type(array).__module__.partition(".")[0] == "cupy":
        from .gpu import dynamic_rows as gpu  # CuPy is an extra, and its import is slow

        return gpu
    raise TypeError(f"rows of batches have kernels for NumPy's and CuPy's arrays, not {type(array).__module__}'s")
