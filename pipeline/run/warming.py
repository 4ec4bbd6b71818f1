"""Compilation of the kernels by every worker, before the first stage is timed."""

from __future__ import annotations

from ...kernels.runtime.warm import WarmUp, warm
from ...tasks.device import MemorySpace
from ...tasks.shards import warm_shards, warm_shards_on_gpu
from ...tasks.warm import run_clique
from ..stages.tiny_run import run_stages
from .context import RunContext


def warm_workers(run: RunContext) -> None:
    """Make every worker compile the kernels of the run, or load them from its cache."""
    engine, plan = run.engine, run.plan
    with run.events.stage("compile", 0):
        on_gpu = bool(engine.capacity.device_bytes)
        reports: list[WarmUp] = []
        if plan.finds_lambda:
            text = plan.source.kind == "string"
            processes = engine.capacity.threads if engine.capacity.in_process else 1
            reports = engine.on_every_worker(warm, plan.method, plan.partitions, on_gpu, text, processes)
        if on_gpu and plan.finds_lambda:
            for compact_rows in (False, True)[: 1 + plan.compact_rows]:
                engine.on_every_worker(_run_clique, plan.method, plan.partitions, plan.is_whole, compact_rows)
        if plan.ingest_on_device:
            engine.on_every_worker(run_stages, MemorySpace.DEVICE)
        if on_gpu and plan.partitions > 1:
            engine.on_every_worker(warm_shards_on_gpu)
        elif plan.in_shards:
            engine.on_every_worker(warm_shards, engine.capacity.threads)
        if run.settings.programs.vertex_programs:
            from ..programs.running import warm_programs

            warm_programs(engine, run.settings, plan.programs.blocks if plan.programs else 1)
    run.events.emit("kernels", compiled=max((report.compiled for report in reports), default=0))


def _run_clique(method: str, partitions: int, whole: bool, compact_rows: bool) -> None:
    # The result stays on the worker: this process may have no GPU.
    run_clique(method, partitions, MemorySpace.DEVICE, whole, compact_rows)
