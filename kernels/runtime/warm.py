"""Compile every kernel of a run, or load it from the cache, before a stage's time is measured."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from subprocess import DEVNULL, PIPE
from typing import Any

from .. import cpu
from . import cache
from .warm_parts import PARTS, SECONDS

_ALWAYS = "join", "forest", "components", "pairs", "rows"
_PEEL = "lower", "live", "scan", "adjacency", "compact"
_MANY = "many", "digits", "groups", "runs", "order", "triangles", "members"
_TEXT = "text", "hashes", "forest", "components"
"""Parts by what needs them, besides the method."""


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
    (``CUPY_CACHE_DIR``); `tasks.warm` calls all others. Up to `processes` processes compile side by side what a cache
    does not have yet.
    """
    start = time.perf_counter()
    before = _compiled()
    if on_gpu:
        parts = ["join", "pairs"]
    else:
        parts = [method, *_ALWAYS, *(_PEEL if method == "peel" else ()), *(_MANY if many else ())]
        parts += ["shards"] * (partitions > 1)
    parts += [part for part in _TEXT if text and part not in parts]
    elsewhere = 0
    with _compiling_for_gpu(processes, partitions > 1) if on_gpu else nullcontext():
        missing = [part for part in parts if not cache.is_marked(part)] if processes > 1 and cache.is_kept() else []
        if len(missing) > 1:
            elsewhere = _compile_side_by_side(missing, processes)
        for part in parts:  # also those that others have compiled: now they are loaded
            PARTS[part]()
            cache.mark(part)
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

    This process has the longest share, since others take time to start. What another process fails to compile, this one
    compiles later.
    """
    shares: list[list[str]] = [[] for _ in range(min(processes, len(parts)))]
    for part in sorted(parts, key=SECONDS.__getitem__, reverse=True):
        min(shares, key=lambda own: sum(SECONDS[one] for one in own)).append(part)
    own, *others = sorted(shares, key=lambda own: -sum(SECONDS[one] for one in own))
    command = [sys.executable, "-m", __spec__.name]
    started: list[subprocess.Popen[str]] = []
    with suppress(OSError):  # no further process may be allowed
        for share in others:
            started.append(subprocess.Popen([*command, *share], stdin=DEVNULL, stdout=PIPE, stderr=DEVNULL, text=True))
    for part in own:
        PARTS[part]()
    told = [process.communicate()[0].strip() for process in started]
    return sum(int(count) for count in told if count.isdecimal())


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
