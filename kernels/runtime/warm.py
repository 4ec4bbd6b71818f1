"""Compile every kernel of a run, or load it from the cache, before a stage's time is measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import Any

import numpy as np

from .. import cpu
from ..cpu.arrays.sort import MANY, by_key
from ..cpu.arrays.strings import hash_strings, sort_strings
from ..cpu.nest import nest_many, subtree_minima, subtree_sums
from ..cpu.peeling.cascade import REMOVED, set_to
from ..cpu.peeling.live_rows import LiveRows
from ..cpu.shards.cut import Cut
from ..cpu.whole_triangles import count_whole
from ..graph import IntArray, LongArray, Topology
from . import cache


@dataclass(frozen=True)
class WarmUp:
    """Result of `warm`."""

    compiled: int
    """Kernels that were compiled. The others came from the cache or had been loaded before."""
    seconds: float


def warm(
    method: str, partitions: int, on_gpu: bool = False, text: bool = False, processes: int = 1, many: bool = True
) -> WarmUp:
    """Call each kernel that `method` (peel, band or fixpoint) uses with `partitions` partitions, on one triangle.

    With `many` also the kernels for graphs of `MANY` edges or more on CPUs, with `text` those for strings. A run on
    GPUs sorts and joins components on the CPU, and numbers strings there, so with `on_gpu` these kernels are called.
    The GPU's kernels that are chosen by the shape of the graph are then compiled, or loaded from CuPy's cache
    (``CUPY_CACHE_DIR``); `tasks.warm` calls all others. If a cache has no kernel yet, up to `processes` processes
    compile them side by side.
    """
    start = time.perf_counter()
    before = _compiled()
    if on_gpu:
        parts = ["join", "pairs", *(["nest", "text"] if text else [])]
    else:
        wanted = {"many": many, "order": many, "text": text, "shards": partitions > 1}
        parts = [method, "nest", "rows", *(part for part, is_wanted in wanted.items() if is_wanted)]
    elsewhere = 0
    with _compiling_for_gpu(processes, partitions > 1) if on_gpu else nullcontext():
        if processes > 1 and cache.is_empty():
            elsewhere = _compile_side_by_side(parts, processes)
        for part in parts:  # also those that others have compiled: now they are loaded
            _PARTS[part]()
    if on_gpu:
        from ..gpu.tables import compile_all

        compile_all(shards=partitions > 1)
    return WarmUp(_compiled() - before + elsewhere, time.perf_counter() - start)


@contextmanager
def _compiling_for_gpu(processes: int, shards: bool) -> Iterator[None]:
    """Other processes compile the operations of CuPy meanwhile, if none has done so before on this machine."""
    from ..gpu.preparing import processes as others

    what = f"operations{' of shards' * shards}"
    wanted = processes > 1 and not others.is_prepared(what)
    started = others.start(processes, shards) if wanted else []
    try:
        yield
    finally:
        for process in started:
            process.wait()
    if wanted:
        others.mark_prepared(what)


def _compile_side_by_side(parts: Sequence[str], processes: int) -> int:
    """Compile the parts in this process and others. Returns how many kernels the others compiled.

    What another process fails to compile, this one compiles later.
    """
    shares: list[list[str]] = [[] for _ in range(min(processes, len(parts)))]
    for part in sorted(parts, key=_SECONDS.__getitem__, reverse=True):
        min(shares, key=lambda own: sum(_SECONDS[one] for one in own)).append(part)
    own, *others = sorted(shares, key=len)
    command = [sys.executable, "-m", __spec__.name]
    started: list[subprocess.Popen[str]] = []
    with suppress(OSError):  # no further process may be allowed
        for share in others:
            started.append(subprocess.Popen([*command, *share], stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True))
    for part in own:
        _PARTS[part]()
    told = [process.communicate()[0].strip() for process in started]
    return sum(int(count) for count in told if count.isdecimal())


def _warm_text() -> None:
    sort_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8))
    hash_strings(np.zeros(2, np.int64), np.zeros(1, np.uint8), np.uint64(1))


def _warm_nest() -> None:
    _warm_join()
    one = np.ones(1, np.int32)
    nest_many(one, one, one, 2)


def _warm_join() -> None:
    """What joins the components that buckets have found."""
    one = np.ones(1, np.int32)
    parent = cpu.nest(one, one, one, 2).parent
    subtree_minima(parent, subtree_sums(parent, np.ones(1, np.int64)))


def _triangle() -> tuple[Topology, LongArray, IntArray]:
    """The edges of a triangle, and the start of each vertex's row among them with the larger ends."""
    low, high = np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32)
    return Topology(low, high, 3), np.array([0, 2, 3, 3], np.int64), high


def _warm_rows() -> None:
    _, offsets, high = _triangle()
    _warm_pairs()
    cpu.intersect(offsets, high, offsets, high, np.ones(3, np.bool_))


def _warm_pairs() -> None:
    cpu.order_pairs(np.zeros(1, np.int32), np.ones(1, np.int32), 2, 2)


def _warm_many() -> None:
    """What is done by other kernels for large graphs."""
    _, offsets, high = _triangle()
    count_whole(offsets, high)
    many = np.arange(MANY, dtype=np.int32)
    set_to(many.copy(), by_key(many, many, MANY), 1)
    set_to(many.astype(np.int8), many, 1)
    cpu.take(many, many)
    cpu.store(np.empty(MANY, np.int32), many, many)
    cpu.positions_by_group(np.zeros(MANY, np.int16), 1)
    cpu.scatter_sum(many, many, MANY), cpu.scatter_max(many, many, MANY)
    cpu.bincount(many, MANY), cpu.bincount(many.astype(np.int64), MANY)
    cpu.store(np.empty(MANY, np.bool_), many, np.ones(MANY, np.bool_))


def _warm_order() -> None:
    many = np.arange(MANY, dtype=np.int32)
    cpu.order_pairs(many, many, MANY, MANY)


def _warm_peel() -> None:
    topology, _, _ = _triangle()
    state = np.array([REMOVED, 0, 0], np.int8)
    LiveRows(topology, cpu.adjacency(topology), state, 3).remove(np.zeros(1, np.int32), 2)
    cpu.Peeling(topology, np.ones(3, np.int32)).advance()


def _warm_band() -> None:
    topology, _, _ = _triangle()
    rows = cpu.adjacency(topology)
    cpu.compact(rows, np.ones(3, np.bool_))
    one, zero, table = np.ones(3, np.int32), np.zeros(3, np.int32), np.full(3, 2, np.int32)
    _, count, _, frontier = cpu.reband(zero, one, one, zero, np.ones(3, np.bool_), table)
    cpu.Cascade(topology, rows).run(rows, count, frontier, table, zero)


def _warm_fixpoint() -> None:
    topology, _, _ = _triangle()
    rows, one = cpu.adjacency(topology), np.ones(3, np.int32)
    cpu.compact(rows, np.ones(3, np.bool_))
    rounds = cpu.Fixpoint(topology, rows, np.ones(3, np.bool_), 1)
    rounds.evaluate(one, np.arange(3, dtype=np.int32), False)
    rounds.unsettle(one, np.arange(3, dtype=np.int32))


def _warm_shards() -> None:
    _, offsets, high = _triangle()
    cpu.pack_lists(offsets, high, np.array([0, 1, 1], np.int16), 0, 2)
    cpu.lookup(np.arange(3), np.arange(3))
    _warm_third_vertex()


def _warm_third_vertex() -> None:
    """Supports by shards, of a triangle whose edges come in two runs."""
    low, high, starts = (np.array(part, np.uint32) for part in ([0, 1, 0], [1, 2, 2], [0, 2, 3]))
    runs, one = np.array([0, 2, 3]), np.ones(3, np.int32)
    merged = cpu.merge_rows(low, high, runs, 3)
    cpu.to_merged_order(merged.origin, one > 0, low, one, one, runs, np.zeros(2, np.int16))
    frozen = low.copy()
    frozen.flags.writeable = False  # arrays from another worker cannot be written to: another type to the compiler
    for ends in (low, frozen):
        Cut(3, 1).classes(ends)
    rows = cpu.third_vertex_rows(merged, Cut(3, 1), 0, 1)
    cpu.count_by_third_vertex(rows, starts, low[:2], merged.high, np.zeros(3, np.int32))


def _compiled() -> int:
    """Number of kernels that this process has compiled, called by `warm` or not."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{cpu.__name__}.")]
    # By identity: some modules import kernels of others.
    found: dict[int, Any] = {id(k): k for module in modules for k in vars(module).values() if hasattr(k, "stats")}
    return sum(sum(k.stats.cache_misses.values()) for k in found.values())


_PARTS: Mapping[str, Callable[[], None]] = {
    "peel": _warm_peel,
    "band": _warm_band,
    "fixpoint": _warm_fixpoint,
    "join": _warm_join,
    "many": _warm_many,
    "nest": _warm_nest,
    "order": _warm_order,
    "pairs": _warm_pairs,
    "rows": _warm_rows,
    "text": _warm_text,
    "shards": _warm_shards,
}
_SECONDS: Mapping[str, float] = {
    "peel": 4.0,
    "band": 4.0,
    "fixpoint": 4.0,
    "join": 2.7,
    "many": 4.5,
    "nest": 3.5,
    "order": 1.5,
    "pairs": 0.6,
    "rows": 1.2,
    "text": 1.5,
    "shards": 4.0,
}
"""About what each part takes to compile."""


if __name__ == "__main__":
    for _part in sys.argv[1:]:
        _PARTS[_part]()
    print(_compiled())
