"""Compilation of the kernels by every worker, before the first stage is timed."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...tasks.device import MemorySpace
from ...tasks.ids.order import MANY
from ...tasks.warm import load_packing
from ..cluster.engine import Engine
from ..cluster.workers.gpu_kernels import Needed, is_prepared, prepare, run_cliques
from ..cluster.workers.kernel_loading import FEWEST_THREADS
from ..plan.plan import Plan
from .context import RunContext

if TYPE_CHECKING:
    from ...kernels.runtime.side_by_side import WarmUp


def warm_workers(run: RunContext) -> None:
    """Make every worker compile the kernels of the run, or load them from its cache.

    One process with several threads loads most kernels for CPUs while rows are read; see `KernelLoading`.
    The first worker of a machine compiles kernels for GPUs, and the others load them. A worker whose GPU kernels were
    all compiled before loads those first that its threads would load at the same time. It loads those for λ in the
    background.
    """
    engine, plan = run.engine, run.plan
    with run.events.stage("compile", 0):
        reports: list[WarmUp] = []
        if engine.capacity.device_bytes:
            reports = _warm_gpus(engine, plan)
        elif plan.finds_lambda:
            from ...kernels.runtime.warm import parts_for, warm  # loads Numba

            text, many, in_process = plan.source.kind == "string", plan.edges >= MANY, engine.capacity.in_process
            if in_process and plan.partitions == 1 and engine.capacity.threads >= FEWEST_THREADS:
                run.loading.start(engine, parts_for(plan.method, 1, text, many))
            else:
                bands = plan.in_bands or plan.bands_on > 1
                own = plan.method, plan.partitions, False, text, engine.capacity.kernel_threads, many, bands
                reports = engine.on_every_worker(warm, *own)
            if plan.in_shards:
                from ...tasks.shards import warm_shards  # imports shards and their kernels

                engine.on_every_worker(warm_shards, engine.capacity.kernel_threads)
            if plan.in_bands or plan.bands_on > 1:
                from ..bounding.peel_bands import load_bands  # imports kernels of bands

                engine.on_every_worker(load_bands, MemorySpace.HOST)
        if run.settings.programs.vertex_programs:
            from ..programs.running import warm_programs

            warm_programs(engine, run.settings, plan.programs.blocks if plan.programs else 1)
    if not run.loading.is_pending:
        run.events.emit("kernels", compiled=max((report.compiled for report in reports), default=0))


def _warm_gpus(engine: Engine, plan: Plan) -> list[WarmUp]:
    needed = Needed(
        plan.method if plan.finds_lambda else None,
        plan.partitions > 1,
        plan.is_whole,
        plan.compact_rows,
        plan.ingest_on_device,
        plan.source.kind == "string",
        plan.in_bands,
    )
    if not all(engine.on_every_worker(is_prepared, needed)):
        return engine.on_every_worker(prepare, needed, engine.capacity.threads)
    if plan.ingest_on_device:
        engine.on_every_worker(load_packing, MemorySpace.DEVICE)
    else:
        from ...kernels.runtime.warm import BY_STAGE, load_parts  # loads Numba

        engine.on_every_worker(load_parts, sorted(BY_STAGE["read"]))
    if plan.finds_lambda and plan.is_whole and engine.capacity.threads > 1:  # while rows are read
        engine.leave_to_workers("load", run_cliques, needed)
        if plan.in_bands:
            from ..bounding.peel_bands import load_bands  # imports kernels of bands

            engine.leave_to_workers("load", load_bands, MemorySpace.DEVICE)
    return []
