"""Compile every kernel of a run, or load it from the cache, before a stage's time is measured."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import Any

from .. import cpu
from . import cache
from .warm_parts import PARTS, SECONDS

_ALWAYS = "join", "forest", "components", "pairs", "rows"
_PEEL = "lower", "live", "scan", "adjacency", "compact"
_MANY = "gather", "scatter", "groups", "runs", "order", "digits", "triangles", "members"
_TEXT = "text", "hashes", "forest", "components"
"""Parts by what needs them, besides the method."""

BY_STAGE: Mapping[str, frozenset[str]] = {
    "read": frozenset({"gather", "text", "hashes"}),
    "number": frozenset({"pairs", "scatter", "groups", "runs", "order"}),
}
"""Parts by the first stage that calls them. The others are not called before the stage `triangulate`."""

_loading = threading.Lock()
"""One thread calls parts at a time, so that it can tell what it compiled."""


@dataclass(frozen=True)
class WarmUp:
    """Result of `warm` and `load_parts`."""

    compiled: int
    """Kernels that were compiled. The others came from the cache or had been loaded before."""
    seconds: float


def parts_for(method: str, partitions: int, text: bool, many: bool = True) -> list[str]:
    """The parts of the kernels for CPUs that `method` (peel, band or fixpoint) uses with `partitions` partitions.

    With `many` also those for graphs of `MANY` edges or more, with `text` those for strings.
    """
    parts = [method, *_ALWAYS, *(_PEEL if method == "peel" else ()), *(_MANY if many else ())]
    parts += ["shards"] * (partitions > 1)
    return parts + [part for part in _TEXT if text and part not in parts]


def load_parts(parts: Sequence[str], processes: int = 1, here: bool = True) -> WarmUp:
    """Call the kernels of the parts. Up to `processes` processes compile side by side those that a cache does not have
    yet, this process among them if `here`.
    """
    start, compiled = time.perf_counter(), 0
    missing = [part for part in parts if not cache.is_marked(part)] if processes > 1 and cache.is_kept() else []
    if len(missing) > here:
        compiled = _compile_side_by_side(missing, processes, here)
    compiled += _call(parts)  # also those that others have compiled: now they are loaded
    for part in parts:
        cache.mark(part)
    return WarmUp(compiled, time.perf_counter() - start)


def warm(
    method: str, partitions: int, on_gpu: bool = False, text: bool = False, processes: int = 1, many: bool = True
) -> WarmUp:
    """Call each kernel that `method` uses with `partitions` partitions, on one triangle; see `parts_for`.

    A run on GPUs sorts and joins components on the CPU, and numbers strings there, so with `on_gpu` these kernels are
    called. The GPU's kernels that are chosen by the shape of the graph are then compiled, or loaded from CuPy's cache
    (``CUPY_CACHE_DIR``); `tasks.warm` calls all others. Up to `processes` processes compile side by side what a cache
    does not have yet.
    """
    if not on_gpu:
        return load_parts(parts_for(method, partitions, text, many), processes)
    start = time.perf_counter()
    with _compiling_for_gpu(processes, partitions > 1):
        found = load_parts(["join", "pairs", *(_TEXT if text else ())], processes)
    from ..gpu.tables import compile_all

    compile_all(shards=partitions > 1)
    return WarmUp(found.compiled, time.perf_counter() - start)


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


def _compile_side_by_side(parts: Sequence[str], processes: int, here: bool) -> int:
    """Compile the parts in other processes, and in this one if `here`. Returns the number of compiled kernels.

    This process has the longest share, since others take time to start. What another process fails to compile, this one
    compiles later.
    """
    shares: list[list[str]] = [[] for _ in range(min(processes, len(parts)))]
    for part in sorted(parts, key=SECONDS.__getitem__, reverse=True):
        min(shares, key=lambda own: sum(SECONDS[one] for one in own)).append(part)
    shares.sort(key=lambda share: sum(SECONDS[part] for part in share))
    own = shares.pop() if here else []
    command = [sys.executable, "-m", __spec__.name]
    started: list[subprocess.Popen[str]] = []
    with suppress(OSError):  # no further process may be allowed
        for share in shares:
            started.append(subprocess.Popen([*command, *share], stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True))
    compiled = _call(own)
    told = [process.communicate()[0].strip() for process in started]
    return compiled + sum(int(count) for count in told if count.isdecimal())


def _call(parts: Sequence[str]) -> int:
    """Call the kernels of the parts. Returns the number of kernels that this compiled."""
    with _loading:
        before = _compiled()
        for part in parts:
            PARTS[part]()
        return _compiled() - before


def _compiled() -> int:
    """Number of kernels that this process has compiled, called by `warm` or not."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(f"{cpu.__name__}.")]
    # By identity: some modules import kernels of others.
    found: dict[int, Any] = {id(k): k for module in modules for k in vars(module).values() if hasattr(k, "stats")}
    return sum(sum(k.stats.cache_misses.values()) for k in found.values())


if __name__ == "__main__":
    for _part in sys.argv[1:]:
        PARTS[_part]()
    print(_compiled())
