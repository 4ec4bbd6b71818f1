"""Call a program's functions for some vertices at a time, in several threads if there are many vertices.

NumPy computes in one thread, and arrays of all vertices do not fit the caches of a core. A piece fits them, and while
NumPy works on it, other threads run. They wait for each other between NumPy's operations, so few threads are of use:
with 4 to 16 threads on 16 cores, PageRank of cnr-2000 (325,557 vertices) spent 7 of 9 ms of a superstep waiting.
The result for a vertex depends on that vertex only, so pieces change nothing.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor, wait
from contextvars import copy_context
from functools import lru_cache
from typing import Any

import numpy as np

from ....kernels.runtime.threads import threads_now
from ...errors import ProgramError
from ..program import Array, Vertices

PIECE = 2**15
"""Vertices of a piece. A call costs as much as some thousand vertices."""
LANE = 2**19
"""Fewest vertices of a thread."""
MOST_LANES = 4
"""Most threads."""


@lru_cache(maxsize=1)
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(MOST_LANES, thread_name_prefix="pieces")


os.register_at_fork(after_in_child=_pool.cache_clear)


def in_pieces(
    v: Vertices,
    compute: Callable[[Vertices, slice], Mapping[str, Array]],
    into: Mapping[str, Array] | None = None,
    rows: Array | None = None,
) -> dict[str, Array]:
    """The arrays [vertices] by name that `compute` gives for some vertices at a time, with their place among all.

    Arrays whose names are in `into` [own] are written there instead, at `rows`, or everywhere. The number of threads is
    that of kernels now. Vertices on a GPU, and few vertices, are one piece. Raises ProgramError if the type of an array
    differs between pieces.
    """
    into = {} if into is None else into
    first = slice(0, min(PIECE, len(v)) if v.on_host else len(v))
    found: dict[str, Array] = {}

    def write(part: Mapping[str, Array], piece: slice) -> None:
        for name, values in part.items():
            if name in into:
                into[name][piece if rows is None else rows[piece]] = values
            elif values.dtype != found[name].dtype:
                kinds = f"{found[name].dtype} for some vertices, and {values.dtype} for others"
                raise ProgramError(f"a function of the program gives {kinds}")
            else:
                found[name][piece] = values

    part = compute(v if first.stop == len(v) else v.part(first), first)
    if first.stop == len(v):
        found = {name: values for name, values in part.items() if name not in into}
        write({name: values for name, values in part.items() if name in into}, first)
        return found
    found = {name: np.empty(len(v), values.dtype) for name, values in part.items() if name not in into}
    write(part, first)
    pieces = [slice(start, min(start + PIECE, len(v))) for start in range(PIECE, len(v), PIECE)]
    lanes = max(1, min(threads_now(), MOST_LANES, len(v) // LANE))
    _share(pieces, lanes, lambda piece: write(compute(v.part(piece), piece), piece))
    return found


def _share(pieces: list[slice], lanes: int, work: Callable[[slice], Any]) -> None:
    """Do the work for each piece, in this thread and `lanes` - 1 others. Raises what the work raises."""

    def run(lane: int) -> None:
        for piece in pieces[lane::lanes]:
            work(piece)

    others = [_pool().submit(copy_context().run, run, lane) for lane in range(1, lanes)]
    try:
        run(0)
    finally:
        wait(others)
    for other in others:
        other.result()
