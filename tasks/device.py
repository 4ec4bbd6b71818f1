"""To the GPU and back: what is computed there are the same tasks, over arrays that lie there."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, TypeVar

import numpy as np

from .. import kernels
from .bound.intervals import Intervals
from .identity import Put
from .ingest import OwnedEdges

H = TypeVar("H", bound=Any)
"""A dataclass of arrays."""


def beside(like: Any, array: Any) -> Any:
    """The array in the memory in which `like` lies."""
    return kernels.to_host(array) if kernels.on_host(like) else kernels.to_device(array)


def moved(held: H, put: Put) -> H:
    """The same value with its arrays where `put` has them; what is one array stays one."""
    arrays = {f.name: getattr(held, f.name) for f in fields(held) if hasattr(getattr(held, f.name), "nbytes")}
    there = {id(array): put(array) for array in arrays.values()}
    return replace(held, **{name: there[id(array)] for name, array in arrays.items()})


def owned_to_device(owned: OwnedEdges) -> OwnedEdges:
    """The edges of a partition on the GPU, without what only publishing needs."""
    unused = np.zeros(0, np.int16)
    slim = replace(owned, bucket=unused, row=unused.astype(np.int32))
    return moved(slim, kernels.to_device)


def intervals_to_host(found: Intervals) -> Intervals:
    """The intervals of a partition in the host's memory."""
    return moved(found, kernels.to_host)
