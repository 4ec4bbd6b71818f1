"""Compile every kernel of a run, or load it from CuPy's cache, before the clock of its stage runs."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from ..graph import Topology
from . import source
from .cascade import Cascade
from .fixpoint import Fixpoint
from .intersect import compile_all, intersect
from .lists import pack_lists
from .lookup import lookup
from .peel import Peeling
from .reband import reband
from .rows import adjacency, compact


def warm(method: str, partitions: int) -> int:
    """Call the kernels of `method` for so many partitions on a triangle; gives how many were loaded."""
    before = source.loaded()
    low, high = cupy.array([0, 0, 1], np.int32), cupy.array([1, 2, 2], np.int32)
    offsets = cupy.array([0, 2, 3, 3], np.int64)
    compile_all()
    intersect(offsets, high, offsets, high, cupy.ones(3, np.bool_))
    rows = adjacency(low, high, 3)
    compact(rows, cupy.ones(3, np.bool_))
    topology = Topology(low, high, rows)  # type: ignore[arg-type]
    one: Any = cupy.ones(3, np.int32)
    if partitions > 1:
        pack_lists(offsets, high, cupy.array([0, 1, 1], np.int16), 0, 2)
        lookup(cupy.arange(3), cupy.arange(3))
    if method == "peel":
        Peeling(topology, one).advance()
    elif method == "band":
        table, zero = np.full(3, 2, np.int32), cupy.zeros(3, np.int32)
        _, count, _, frontier = reband(zero, one, one, np.zeros(3, np.int32), np.ones(3, np.bool_), table)
        Cascade(topology).run(rows, count, frontier, table, zero)
    else:
        rounds = Fixpoint(topology, cupy.ones(3, np.bool_), 1)
        rounds.evaluate(one, cupy.arange(3, dtype=np.int32), False)
        rounds.unsettle(one, cupy.arange(3, dtype=np.int32))
    cupy.cuda.get_current_stream().synchronize()
    return source.loaded() - before
