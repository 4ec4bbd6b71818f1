"""Where kernels run. Tests of kernels are written once and run on each: arrays go in by `put` and come out by `get`."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import pytest
from numpy.typing import NDArray

from edgemill.kernels.graph import Topology


class Backend(Protocol):
    """One array type."""

    @property
    def name(self) -> str:
        """For the test's id."""
        ...

    def put(self, values: Any, dtype: Any = np.int32) -> Any:
        """A new array of this backend."""
        ...

    def get(self, array: Any) -> NDArray[Any]:
        """The same values as a NumPy array."""
        ...


@dataclass(frozen=True)
class OnCpu:
    """NumPy arrays and Numba kernels."""

    name: str = "cpu"

    def put(self, values: Any, dtype: Any = np.int32) -> Any:
        return np.array(values, dtype)

    def get(self, array: Any) -> NDArray[Any]:
        return np.asarray(array)


@dataclass(frozen=True)
class OnGpu:
    """CuPy arrays and CUDA kernels."""

    name: str = "gpu"

    def put(self, values: Any, dtype: Any = np.int32) -> Any:
        import cupy

        return cupy.asarray(np.array(values, dtype))

    def get(self, array: Any) -> NDArray[Any]:
        return np.asarray(array.get() if hasattr(array, "get") else array)


BACKENDS = [pytest.param(OnCpu(), id="cpu"), pytest.param(OnGpu(), id="gpu", marks=pytest.mark.gpu)]
"""To parametrise by."""


def devices() -> int:
    """CUDA devices of this machine."""
    try:
        import cupy

        return int(cupy.cuda.runtime.getDeviceCount())
    except Exception:  # no package, no driver or no device: all the same to the caller
        return 0


def topology(backend: Backend, edges: list[tuple[int, int]], vertices: int) -> Topology:
    """Edges sorted by (low, high), low < high."""
    low, high = (backend.put([edge[end] for edge in edges]) for end in (0, 1))
    return Topology(low, high, vertices)


def kernel_types() -> dict[str, list[str]]:
    """What each kernel of this process was compiled for, or loaded from the cache for."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith("edgemill.kernels.cpu")]
    found = [kernel for module in modules for kernel in vars(module).values() if hasattr(kernel, "signatures")]
    return {f"{kernel.__module__}.{kernel.__name__}": [str(types) for types in kernel.signatures] for kernel in found}
