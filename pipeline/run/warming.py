"""Compilation of the kernels by every worker, before the first stage is timed."""

from __future__ import annotations

from ...kernels.runtime.warm import WarmUp, warm
from ...tasks.device import MemorySpace
from ...tasks.ids.order import MANY
from ...tasks.shards import warm_shards, warm_shards_on_gpu
from ...tasks.warm import load_packing, run_clique
from ..cluster.engine import Engine
from ..plan.plan import Plan
from ..stages.tiny_run import run_stages
from .context import RunContext


def warm_workers(run: RunContext) -> None:
    """Make every worker compile the kernels of the run, or load them from its cache.

    A worker whose GPU kernels were all compiled before loads those first that its threads would load at the same time.
    It loads those for λ in the background.
    """
    engine, plan = run.engine, run.plan
    with run.events.stage("compile", 0):
        reports: list[WarmUp] = []
        if engine.capacity.device_bytes:
            reports = _warm_gpus(engine, plan)
        elif plan.finds_lambda:
            processes = engine.capacity.threads if engine.capacity.in_process else 1
            text = plan.source.kind == "string"
            many = plan.edges >= MANY
            reports = engine.on_every_worker(warm, plan.method, plan.partitions, False, text, processes, many)
            if plan.in_shards:
                engine.on_every_worker(warm_shards, engine.capacity.threads)
        if run.settings.programs.vertex_programs:
            from ..programs.running import warm_programs

            warm_programs(engine, run.settings, plan.programs.blocks if plan.programs else 1)
    run.events.emit("kernels", compiled=max((report.compiled for report in reports), default=0))


def _warm_gpus(engine: Engine, plan: Plan) -> list[WarmUp]:
    text, several = plan.source.kind == "string", plan.partitions > 1
    kind = plan.finds_lambda, plan.method, plan.is_whole, plan.compact_rows, plan.ingest_on_device
    what = repr((*kind, several, text))
    if all(engine.on_every_worker(_is_prepared, what)):
        if plan.ingest_on_device:
            engine.on_every_worker(load_packing, MemorySpace.DEVICE)
        if plan.is_whole and engine.capacity.threads > 1:  # while rows are read
            engine.leave_to_workers("load", _run_clique, plan.method, plan.partitions, True, plan.compact_rows)
        return []
    reports: list[WarmUp] = []
    if plan.finds_lambda:
        own = plan.method, plan.partitions
        reports = engine.on_every_worker(warm, *own, True, text, engine.capacity.threads)
        for compact_rows in (False, True)[: 1 + plan.compact_rows]:
            engine.on_every_worker(_run_clique, *own, plan.is_whole, compact_rows)
    if plan.ingest_on_device:
        engine.on_every_worker(run_stages, MemorySpace.DEVICE)
    if several:
        engine.on_every_worker(warm_shards_on_gpu)
    engine.on_every_worker(_mark_prepared, what)
    return reports


def _is_prepared(what: str) -> bool:
    from ...kernels.gpu.preparing.processes import is_prepared  # imports CuPy

    return is_prepared(what)


def _mark_prepared(what: str) -> None:
    from ...kernels.gpu.preparing.processes import mark_prepared  # imports CuPy

    mark_prepared(what)


def _run_clique(method: str, partitions: int, whole: bool, compact_rows: bool) -> None:
    # The result stays on the worker: this process may have no GPU.
    run_clique(method, partitions, MemorySpace.DEVICE, whole, compact_rows)
