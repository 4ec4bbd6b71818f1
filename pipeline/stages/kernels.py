"""The kernels of a run on a worker.

A worker with a GPU compiles its kernels at the first run on its machine, and loads them in later ones. Kernels for CPUs
are loaded from the cache, or compiled, while rows are read.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import product
from typing import TYPE_CHECKING

from ...kernels.runtime.device import device, on_host
from ...kernels.runtime.threads import cores
from ...tasks.device import MemorySpace
from ...tasks.errors import UsageError
from ...tasks.publish.encoded import encode_on_device
from ...tasks.warm import load_coding, run_clique
from ..cluster.engine import Engine, Future
from ..events import Events

if TYPE_CHECKING:
    from ...kernels.runtime.side_by_side import WarmUp


@dataclass(frozen=True)
class Needed:
    """What decides which kernels a run needs."""

    method: str | None
    """How λ is found; None if it is not."""
    several: bool
    """Whether there are several shards."""
    whole: bool
    """Whether one GPU peels the whole graph."""
    compact_rows: bool
    ingest: bool
    """Whether GPUs number and clean the rows."""
    text: bool
    """Whether ids are strings."""
    bands: bool = False
    """Whether several GPUs peel bands."""


def is_prepared(needed: Needed) -> bool:
    """Task: whether all kernels were compiled on this machine before."""
    from ...kernels.gpu.compiling import first_run  # imports CuPy

    return first_run.is_prepared(repr(needed))


def prepare(needed: Needed, threads: int) -> WarmUp:
    """Task: compile the kernels, or load them. One worker of a machine compiles, with up to `threads` processes."""
    from ...kernels.gpu.compiling import first_run
    from ...kernels.runtime.side_by_side import WarmUp
    from ...kernels.runtime.warm import warm
    from .tiny_run import run_stages

    report = WarmUp(0, 0.0)
    with first_run.preparing(repr(needed)):
        if needed.method is not None:
            report = warm(needed.method, 1 + needed.several, True, needed.text and not needed.ingest, threads)
            run_cliques(needed)
        if needed.ingest:
            run_stages(MemorySpace.DEVICE)
            load_coding(MemorySpace.DEVICE, needed.text)
        if needed.several:
            from ...tasks.shards import warm_shards_on_gpu

            warm_shards_on_gpu()
        if needed.bands:
            from ...tasks.bands.warm import warm_bands_on_gpu  # imports bands and their kernels

            warm_bands_on_gpu()
    return report


def run_cliques(needed: Needed) -> None:
    """Task: find λ of some cliques, and encode it."""
    assert needed.method is not None
    for compact_rows in (False, True)[: 1 + needed.compact_rows]:
        known = run_clique(needed.method, MemorySpace.DEVICE, needed.whole, compact_rows)
    if not on_host(known.low):
        encode_on_device({"lambda": known.low}, [[len(known.low)]], "none")


def compile_for_gpus() -> float:
    """Compile our CUDA kernels for the usual GPUs, which needs no GPU. Returns the seconds that it took.

    If this machine has a GPU, CuPy's kernels of runs on it are compiled, too. Raises UsageError without CuPy or NVRTC,
    and for a cache folder that cannot be written.
    """
    start = time.perf_counter()
    if not has_cupy():
        raise UsageError("kernels of gpu are compiled by CuPy, which is not installed: install edgemill[cu13] or cu12")
    from ...kernels.gpu.compiling.ahead import compile_ahead, missing

    if lacking := missing():
        raise UsageError(f"kernels of gpu cannot be compiled: {lacking}")
    try:
        compile_ahead(cores())
    except OSError as error:
        why = error.strerror or error
        raise UsageError(f"cannot write the folder for compiled kernels: {why}; set EDGEMILL_CACHE_DIR=…") from error
    if not device().missing:
        for compact_rows, text in product((False, True), repeat=2):
            prepare(Needed("peel", False, True, compact_rows, True, text), cores())
        prepare(Needed("peel", True, False, False, True, False), cores())
    return time.perf_counter() - start


def has_cupy() -> bool:
    """Whether CuPy is installed. Does not import it."""
    return find_spec("cupy") is not None


FEWEST_THREADS = 4
"""With fewer threads, reading would take longer by about as much time as the kernels take."""
_STAGES = "number", "triangulate"
"""Stages that wait for kernels, in order."""


class KernelLoading:
    """The kernels of a run in this process that are loaded in the background."""

    def __init__(self) -> None:
        self._pending: dict[str, Future] = {}
        """Tasks by the stage that waits for them."""
        self._reports: list[WarmUp] = []

    @property
    def is_pending(self) -> bool:
        """Whether a stage has to wait for kernels."""
        return bool(self._pending)

    def start(self, engine: Engine, parts: Sequence[str]) -> None:
        """Start to load all `parts`, and wait for the parts that the stage `read` calls.

        Parts that were never compiled are compiled by other processes: a third of these compile the parts that the
        stage `number` needs, and the others all parts that are needed later.
        """
        from ...kernels.runtime.warm import BY_STAGE, load_parts  # loads Numba

        first, soon = ([part for part in parts if part in BY_STAGE[stage]] for stage in ("read", "number"))
        rest = [part for part in parts if part not in first and part not in soon]
        few = engine.capacity.threads // 3
        shares = (soon, max(2, few)), (rest, max(2, engine.capacity.threads - few))
        tasks = [(own, processes, False) for own, processes in shares]
        self._pending = dict(zip(_STAGES, engine.in_background().map("load", load_parts, tasks), strict=True))
        self._reports += engine.on_every_worker(load_parts, first, 2)

    def finish(self, engine: Engine, events: Events, stage: str) -> None:
        """Wait for the kernels that `stage`, "number" or "triangulate", and the stages before it call."""
        names = [name for name in _STAGES[: _STAGES.index(stage) + 1] if name in self._pending]
        if not names:
            return
        wanted = [self._pending.pop(name) for name in names]
        with nullcontext() if all(task.done() for task in wanted) else events.stage("compile", 0):
            self._reports += engine.gather(wanted)
        if not self._pending:
            events.emit("kernels", compiled=sum(report.compiled for report in self._reports))
