"""A plugin of pytest for NetworkX's own tests: it prints how often each function of the backend was called."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

import pytest

from edgemill.pipeline.networkx_backend import backend
from edgemill.pipeline.networkx_backend.info import get_info

CALLS: Counter[str] = Counter()


def counted(name: str, function: Any) -> Any:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        CALLS[name] += 1
        return function(*args, **kwargs)

    return call


def pytest_configure() -> None:
    for name in get_info()["functions"]:
        setattr(backend, name, counted(name, getattr(backend, name)))


@pytest.hookimpl(trylast=True)
def pytest_unconfigure() -> None:
    print("\ncalls:", json.dumps(CALLS))
