"""Arrays that are not NumPy's and mix with none of its: what runs on them runs on CuPy's, as far as that can be told
without a GPU.

They do what NumPy does by its protocols, refuse arrays of the host beside them as CuPy does, and use the CPU's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from edgemill import kernels
from edgemill.kernels import cpu
from edgemill.kernels.runtime.sizes import SizedArrays
from edgemill.tasks.storage import array_files

_PLAIN = (int, float, bool, np.generic, str, type, np.dtype, type(None), slice, type(Ellipsis))


_REFUSED = (np.ones, np.full, np.repeat)
"""What NumPy would do and CuPy does not: `like` with a value to fill in, and counts that are an array."""


class Foreign(NDArrayOperatorsMixin):
    """An array elsewhere."""

    def __init__(self, values: Any) -> None:
        self._values = np.asarray(values)

    def get(self) -> Any:
        """A copy on the host."""
        return self._values.copy()

    def __array__(self, *_: Any, **__: Any) -> Any:
        raise TypeError("implicit conversion to a NumPy array")

    def __array_function__(self, function: Any, _: Any, arguments: Any, named: Any) -> Any:
        if function is np.asarray:  # the way there
            return to_foreign(*arguments)
        if function in _REFUSED:
            raise TypeError(f"CuPy cannot do {function.__name__} for an array of NumPy's interface")
        return _wrap(function(*map(_unwrap, arguments), **{key: _unwrap(value) for key, value in named.items()}))

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **named: Any) -> Any:
        if method != "__call__":
            raise TypeError(f"{ufunc.__name__}.{method}")
        out = named.pop("out", ())
        if out:
            named["out"] = tuple(map(_unwrap, out))
        return _wrap(ufunc(*map(_unwrap, inputs), **named))

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._values, name)
        if not callable(found):
            return _wrap(found)
        if name == "repeat":
            raise TypeError("CuPy repeats by a number only")

        def call(*arguments: Any, **named: Any) -> Any:
            if "initial" in named:
                raise TypeError(f"CuPy has no initial value for {name}")
            return _wrap(found(*map(_unwrap, arguments), **named))

        return call

    def __getitem__(self, key: Any) -> Any:
        return _wrap(self._values[_unwrap(key)])

    def __setitem__(self, key: Any, value: Any) -> None:
        self._values[_unwrap(key)] = _unwrap(value)

    def __len__(self) -> int:
        return len(self._values)

    def __bool__(self) -> bool:
        return bool(self._values)

    def __int__(self) -> int:
        return int(self._values)

    def __index__(self) -> int:
        return int(self._values)


def _wrap(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Foreign(value)
    if isinstance(value, np.generic):
        return Foreign(np.asarray(value))
    return type(value)(map(_wrap, value)) if isinstance(value, tuple | list) else value


def _unwrap(value: Any) -> Any:
    if isinstance(value, Foreign):
        return value._values
    if isinstance(value, tuple | list):
        return type(value)(map(_unwrap, value))
    if isinstance(value, _PLAIN) or (isinstance(value, np.ndarray) and not value.ndim):
        return value
    raise TypeError(f"a host's {type(value).__name__} beside an array elsewhere")


def to_foreign(array: Any) -> Foreign:
    """The array elsewhere."""
    return array if isinstance(array, Foreign) else Foreign(array.copy())


def is_foreign(array: Any) -> bool:
    """Whether the array is elsewhere."""
    return isinstance(array, Foreign)


class _Elsewhere:
    """An object of the CPU's kernels whose methods take and give arrays elsewhere."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._inner, name)
        return _call(found) if callable(found) else _there(found)


def _call(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda *arguments: _there(function(*map(_here, arguments)))


def _each(value: Any, change: Callable[[Any], Any]) -> Any:
    """The value with `change` done to all arrays in it."""
    if isinstance(value, SizedArrays):
        known: Any = value
        return replace(known, **{f.name: change(getattr(known, f.name)) for f in fields(known)})
    if isinstance(value, Mapping):
        return {key: change(part) for key, part in value.items()}
    if isinstance(value, tuple) and hasattr(value, "_fields"):  # a named tuple
        return type(value)(*map(change, value))
    return tuple(map(change, value)) if isinstance(value, tuple | list) else value


def _here(value: Any) -> Any:
    return value._values if isinstance(value, Foreign) else _each(value, _here)


def _there(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return Foreign(value)
    if type(value).__module__.startswith("edgemill") and not isinstance(value, SizedArrays):
        return _Elsewhere(value)
    return _each(value, _there)


@contextmanager
def with_kernels() -> Iterator[None]:
    """Within it, arrays elsewhere have kernels, and there is a way there and back."""
    to_host, total, own = kernels.to_host, kernels.total, kernels._backend
    twin = SimpleNamespace(**{name: _call(getattr(cpu, name)) for name in cpu.__all__})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_backend", lambda array: twin if isinstance(array, Foreign) else own(array))
        patch.setattr(kernels, "to_host", lambda array: array.get() if isinstance(array, Foreign) else to_host(array))
        patch.setattr(kernels, "to_device", to_foreign)
        patch.setattr(array_files, "device", lambda: SimpleNamespace(missing=""))
        patch.setattr(kernels, "total", lambda array: total(_here(array)))
        patch.setattr("edgemill.kernels.gpu.arrays.transfer.synchronize", lambda: None)  # nothing runs elsewhere
        yield
