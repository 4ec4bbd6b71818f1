"""The kernels of a run on a worker with a GPU: compiled at the first run on its machine, and loaded by later ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....tasks.device import MemorySpace
from ....tasks.warm import run_clique

if TYPE_CHECKING:
    from ....kernels.runtime.side_by_side import WarmUp


@dataclass(frozen=True)
class Needed:
    """What decides which kernels a run needs."""

    method: str | None
    """How λ is found; None if it is not."""
    several: bool
    """Whether there are several partitions."""
    whole: bool
    """Whether one GPU peels the whole graph."""
    compact_rows: bool
    ingest: bool
    """Whether GPUs number and clean the rows."""
    text: bool
    """Whether ids are strings."""


def is_prepared(needed: Needed) -> bool:
    """Task: whether all kernels were compiled on this machine before."""
    from ....kernels.gpu.preparing import processes  # imports CuPy

    return processes.is_prepared(repr(needed))


def prepare(needed: Needed, threads: int) -> WarmUp:
    """Task: compile the kernels, or load them. One worker of a machine compiles, with up to `threads` processes."""
    from ....kernels.gpu.preparing import processes
    from ....kernels.runtime.side_by_side import WarmUp
    from ....kernels.runtime.warm import warm
    from ...stages.tiny_run import run_stages

    report = WarmUp(0, 0.0)
    with processes.preparing(repr(needed)):
        if needed.method is not None:
            report = warm(needed.method, 1 + needed.several, True, needed.text, threads)
            run_cliques(needed)
        if needed.ingest:
            run_stages(MemorySpace.DEVICE)
        if needed.several:
            from ....tasks.shards import warm_shards_on_gpu

            warm_shards_on_gpu()
    return report


def run_cliques(needed: Needed) -> None:
    """Task: find λ of some cliques."""
    assert needed.method is not None
    for compact_rows in (False, True)[: 1 + needed.compact_rows]:
        run_clique(needed.method, 1 + needed.several, MemorySpace.DEVICE, needed.whole, compact_rows)
