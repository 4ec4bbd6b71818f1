"""Whether a plan fits the workers, and the messages that say what does not fit and what to change."""

from __future__ import annotations

from ...kernels.graph import MAX_LOCAL_EDGES
from ...tasks.errors import OutOfRoom
from ..cluster.connecting.local import WORKER_BYTES
from ..messages.wording import format_bytes
from .facts import NO_METHOD
from .limits import FILL
from .plan import Plan

_MORE_PARTITIONS = "raise partitioning.count"


def refusal(plan: Plan) -> OutOfRoom | None:
    """Why a plan cannot succeed; None if it may. `edgemill plan` says this, and a run ends with it."""
    try:
        refuse_if_too_large(plan)
    except OutOfRoom as error:
        return error
    return None


def fit(plan: Plan) -> str:
    """Whether a plan fits: `yes`, `tight` and why, if it may succeed, or `no`, if it is refused."""
    if refusal(plan) is not None:
        return "no"
    return "yes" if plan.fits() else f"tight: {excess(plan)}"


def refuse_if_too_large(plan: Plan) -> None:
    """Refuse a plan that cannot succeed.

    Raises OutOfRoom if a partition has too many edges, if the projected memory of a worker or of its GPU exceeds its
    limit, or if half of the projected result exceeds the free disk.
    """
    more = remedy(plan)
    parts = "groups of shards" if plan.in_shards else "partitions"
    if plan.has_too_many_edges:
        raise OutOfRoom(
            f"the largest of {plan.partitions} {parts} would hold about {plan.largest_edges:,} edges, over "
            f"the {MAX_LOCAL_EDGES:,} allowed: {more}"
        )
    if not plan.may_fit_device():
        what = f"the largest of {plan.partitions} partitions"
        if plan.in_shards:
            what = f"{plan.shards_on_a_gpu} of {plan.shards} shards"
        raise OutOfRoom(
            f"{what} would need about {format_bytes(plan.device_bytes)} on a GPU of "
            f"{format_bytes(plan.capacity.device_bytes)}: {more}, or use cluster.device=cpu"
        )
    limit = plan.capacity.memory_bytes
    if limit and limit < WORKER_BYTES:
        raise OutOfRoom(
            f"a worker needs about {format_bytes(WORKER_BYTES)} to start and has "
            f"{format_bytes(limit)}: give workers more memory (cluster.memory_limit_bytes=…), or start "
            "fewer of them"
        )
    if limit and plan.worker_bytes > limit:
        what, change = f"one of {plan.partitions} {parts}", more
        if plan.reading_bytes > plan.bounding_bytes:
            what = f"{plan.blocks_at_once} of {len(plan.blocks)} blocks, of up to {plan.block_rows:,} rows,"
            change = "lower ingest.rows_per_block, write smaller row groups"
        if plan.programs is not None and plan.programs_bytes > max(plan.reading_bytes, plan.bounding_bytes):
            what, change = f"a block of programs, one of {plan.programs.blocks},", "start more workers"
        raise OutOfRoom(
            f"a worker would need about {format_bytes(plan.worker_bytes)} for {what} at once and has "
            f"{format_bytes(limit)}: {change}, give workers more memory (cluster.memory_limit_bytes=…) or fewer "
            "threads (cluster.threads_per_worker=…)"
        )
    if plan.disk_bytes is not None and plan.graph.output_bytes / 2 > plan.disk_bytes:
        raise OutOfRoom(
            f"no room left for the result: it takes about {format_bytes(plan.graph.output_bytes)}, and the disk of "
            f"output.path has {format_bytes(plan.disk_bytes)}: free some, or choose another output folder"
        )


def excess(plan: Plan) -> str:
    """The clause of a message that says which memory is too small."""
    if not plan.fits_device():
        has = format_bytes(plan.capacity.device_bytes)
        what = "a GPU's shards" if plan.in_shards else "the largest"
        return f"{what} would need ~{format_bytes(plan.device_bytes)} of a GPU that has {has}"
    if plan.has_too_many_edges:
        return f"the largest would hold ~{plan.largest_edges:,} edges, more than are allowed"
    has = format_bytes(plan.capacity.memory_bytes)
    return f"a worker would need ~{format_bytes(plan.worker_bytes)}, over {FILL:.0%} of its {has}"


def remedy(plan: Plan) -> str:
    """Advice that makes a worker's part of the graph smaller."""
    if plan.method not in ("peel", NO_METHOD):
        return "use bounding.method=peel"
    if plan.partitions < plan.capacity.workers:
        return _MORE_PARTITIONS
    return "start more workers" + ", each with a GPU of its own" * plan.on_device
