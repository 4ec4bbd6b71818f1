"""Fast imports for a run: without pandas, SciPy, threads of BLAS, and cycle collection."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_BLAS_THREADS = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
"""Environment variables that give OpenBLAS its number of threads."""


@contextmanager
def light_imports(freeze: bool) -> Iterator[None]:
    """Disable the cycle collector while the block imports modules: it would run often and find next to no garbage.

    With `freeze`, all objects at the end of the block are excluded from collection until `gc.unfreeze()`.
    """
    _import_numpy_with_one_thread()
    _hide_pandas_from_arrow()
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if freeze:
            gc.freeze()
        if enabled:
            gc.enable()


def _import_numpy_with_one_thread() -> None:
    """Import NumPy such that OpenBLAS starts no threads, unless the user has set their number.

    Their start takes more CPU than the rest of NumPy's import, and edgemill multiplies no matrices.
    """
    if "numpy" in sys.modules or any(name in os.environ for name in _BLAS_THREADS):
        return
    os.environ[_BLAS_THREADS[0]] = "1"
    try:
        import numpy  # noqa: F401
    finally:
        del os.environ[_BLAS_THREADS[0]]


def _hide_pandas_from_arrow() -> None:
    """Keep Arrow from importing pandas, which takes a quarter of a second, in a process that passes no pandas frame.

    If pandas is installed, Arrow imports it before it converts its first value, to recognize pandas' missing values.
    It tries once. `to_pandas()` still works.
    """
    if "pandas" in sys.modules:
        return
    with _hidden("pandas"):
        import pyarrow

        pyarrow.scalar(0)


def hide_scipy_from_cupy() -> None:
    """Keep CuPy from importing SciPy, which takes a quarter of a second, in a process that passes no matrix of SciPy.

    CuPy would import it for the first operator on an array and a number, to recognize matrices.
    """
    if "scipy" in sys.modules:
        return
    from ...kernels.runtime.device import import_operators

    with _hidden("scipy"):
        import_operators()


@contextmanager
def _hidden(package: str) -> Iterator[None]:
    """Within the context, imports of the package fail."""
    finder = _NotInstalled(package)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _NotInstalled:
    """Makes Python believe that a package is not installed."""

    def __init__(self, package: str) -> None:
        self._package = package

    def find_spec(self, fullname: str, path: object, target: object = None) -> None:
        if fullname.partition(".")[0] == self._package:
            raise ModuleNotFoundError(f"No module named {fullname!r}", name=fullname)
