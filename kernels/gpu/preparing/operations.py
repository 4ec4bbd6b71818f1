"""The CuPy operations of a run on one GPU, and our own kernels, each as a function that makes CuPy compile it.

CuPy generates and compiles a kernel for each operation and types of operands: about a hundred for a run. `processes`
compiles them side by side. An operation that is missing here is compiled when a run needs it; a test names those.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any

import cupy
import numpy as np

from .. import tables
from ..runtime import source

LENGTH = 2**22
"""Elements of operands. CuPy scans short arrays with other kernels than long ones."""
_FEW, _SHORT = 100, 5000
"""Elements of shorter operands."""

_UFUNCS = {
    "add": "int64,int64 int64,int int64,int32 int32,int32 int32,int uint64,uint",
    "bitwise_and": "bool,bool int64,int int32,int",
    "bitwise_or": "int64,int64 int64,int32",
    "bitwise_xor": "uint64,uint64",
    "equal": "int64,int64 int32,int int16,int",
    "floor_divide": "int64,int int32,int",
    "greater": "int64,int64 int64,int int32,int32 int32,int",
    "greater_equal": "int32,int",
    "invert": "bool",
    "left_shift": "int64,int int32,int",
    "less": "int64,int int32,int int16,int",
    "less_equal": "int64,int",
    "maximum": "int64,int64 int32,int32",
    "minimum": "int64,int64 int32,int32",
    "multiply": "int64,int int,int32 uint64,uint",
    "negative": "int64 int32",
    "not_equal": "int64,int64 int64,int int32,int32 int32,int",
    "remainder": "int32,int uint64,uint",
    "right_shift": "int64,int int32,int uint64,uint",
    "subtract": "int64,int64 int64,int int32,int32 int32,int int,int32",
    "where": "bool,int64,int bool,int32,int bool,int16,int16",
}
"""Operands of each function: array types, or a Python int (of an unsigned array: uint)."""
_CONVERSIONS = "int32,int64 int64,int32 int64,uint64 int64,int16 int32,uint64 uint64,int16 bool,int32 int16,int64"
_TAKEN = "int64,int64 int64,int32 int64,int16 int32,int64 int32,int32 int32,int16 int32,bool"
_STORED = "int64,int32 int64,bool int32,int64 int32,int32 int32,int16 int32,bool"
"""Types of an index and of the array that it is for."""
_SEARCHED = "int64,int64 int32,int64 int64,int32"
"""Types of the array that is searched and of the values."""


def operations() -> list[Callable[[], object]]:
    """Functions that compile all kernels, those that take longest first."""
    return [*_own_kernels(), *_scans(), *_on_indices(), *_ufuncs(), *_others()]


def _own_kernels() -> Iterator[Callable[[], object]]:
    yield partial(_compile, "peel", cooperative=True)
    for side, (_, slots, warps, one_warp) in product((0, 1), tables.SIZES):
        yield partial(_compile, "intersect", SIDE=side, SLOTS=slots, WARPS=warps, ONE_WARP=one_warp)
    for name in ("intersect:group", "rows:fill_rows", "nest:unite", "arrays/total:total_bool"):
        yield partial(_compile, name)


def _compile(name: str, **options: Any) -> None:
    source.kernel(name, **options).compile()


def _ones(kind: str, length: int = LENGTH) -> Any:
    return cupy.ones(length, np.dtype(kind))


def _forms(text: str) -> list[list[str]]:
    return [form.split(",") for form in text.split()]


def _scans() -> Iterator[Callable[[], object]]:
    for length in (_FEW, _SHORT, LENGTH):
        yield partial(_find, length)
        for kind in ("int32", "int64"):
            yield partial(_select, kind, length)
        for kind in ("bool", "int32"):
            yield partial(_sum_up, kind, length)
    yield _count
    yield _sort


def _find(length: int) -> None:
    cupy.flatnonzero(_ones("bool", length))


def _select(kind: str, length: int) -> None:
    _ones(kind, length)[_ones("bool", length)]


def _sum_up(kind: str, length: int) -> None:
    cupy.cumsum(_ones(kind, length), dtype=np.int32)


def _count() -> None:
    cupy.bincount(_ones("int32"), minlength=5)


def _sort() -> None:
    cupy.sort(_ones("int64"))
    cupy.argsort(_ones("int64"))


def _on_indices() -> Iterator[Callable[[], object]]:
    for index, kind in _forms(_TAKEN):
        yield partial(_take, index, kind)
    for index, kind in _forms(_STORED):
        yield partial(_store, index, kind)
    for keys, values in _forms(_SEARCHED):
        yield partial(_search, keys, values)
    yield _combine


def _take(index: str, kind: str) -> None:
    _ones(kind)[_ones(index)]


def _store(index: str, kind: str) -> None:
    array = _ones(kind)
    array[_ones(index)] = True if kind == "bool" else array.copy()


def _search(keys: str, values: str) -> None:
    cupy.searchsorted(_ones(keys), _ones(values))


def _combine() -> None:
    cupy.add.at(_ones("uint64"), _ones("int32"), _ones("uint64"))
    cupy.maximum.at(_ones("int32"), _ones("int32"), _ones("int32"))


def _ufuncs() -> Iterator[Callable[[], object]]:
    for name, forms in _UFUNCS.items():
        for kinds in _forms(forms):
            yield partial(_call, name, kinds)


def _call(name: str, kinds: list[str]) -> None:
    getattr(cupy, name)(*map(_operand, kinds))


def _operand(kind: str) -> Any:
    if kind in ("int", "uint"):
        return 1 if kind == "int" else np.uint64(1)
    return _ones(kind)


def _others() -> Iterator[Callable[[], object]]:
    for before, after in _forms(_CONVERSIONS):
        yield partial(_convert, before, after)
    for kind in ("int64", "int32", "uint32", "int16", "bool"):
        yield partial(_assign, kind)
        yield partial(cupy.full, 5, 1, kind)
    for kind in ("int32", "int64"):
        yield partial(cupy.arange, 5, dtype=kind)


def _convert(before: str, after: str) -> None:
    _ones(before).astype(after)


def _assign(kind: str) -> None:
    array = _ones(kind)
    array[:] = _ones(kind)
    array[:] = 1
    array[::2].copy()
    array[0] = 1
