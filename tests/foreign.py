"""Arrays that are not NumPy's and mix with none of its: what runs on them runs on CuPy's, as far as that can be told
without a GPU.

They do what NumPy does by its protocols, refuse arrays of the host beside them as CuPy does, and use the CPU's kernels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.lib.mixins import NDArrayOperatorsMixin

from edgemill import kernels
from edgemill.kernels import cpu

_PLAIN = (int, float, bool, np.generic, str, type, np.dtype, type(None), slice, type(Ellipsis))


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
        return lambda *arguments, **named: _wrap(found(*map(_unwrap, arguments), **named))

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


def _twin(name: str) -> Callable[..., Any]:
    function = getattr(cpu, name)

    @wraps(function)
    def call(*arguments: Any, **named: Any) -> Any:
        return _wrap_all(function(*map(_unwrap_all, arguments), **named))

    return call


def _unwrap_all(value: Any) -> Any:
    return value._values if isinstance(value, Foreign) else value


def _wrap_all(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _wrap_all(part) for key, part in value.items()}
    return tuple(map(_wrap_all, value)) if isinstance(value, Sequence) else _wrap(value)


@contextmanager
def with_kernels() -> Iterator[None]:
    """Within it, arrays elsewhere have kernels, and come back by `kernels.to_host`."""
    to_host = kernels.to_host
    names = ("lookup", "maxima_at", "order_pairs", "positions", "row_numbers", "sort_keys", "sums_at")
    twin, own = SimpleNamespace(**{name: _twin(name) for name in names}), kernels._twin
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernels, "_twin", lambda array: twin if isinstance(array, Foreign) else own(array))
        patch.setattr(kernels, "to_host", lambda array: array.get() if isinstance(array, Foreign) else to_host(array))
        yield
