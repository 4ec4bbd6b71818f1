"""What a plan says: whether it fits the workers, what does not fit and what to change, and all of it as text.

Estimated numbers have a ~ before them in the text.
"""

from __future__ import annotations

from ...kernels.graph import MAX_LOCAL_EDGES
from ...tasks.errors import OutOfRoom
from ...tasks.estimate.sampling import EstimatedCount
from ...tasks.ids.display import type_name
from ...tasks.inputs.sources import Source
from ...tasks.storage.passwords import without_passwords
from ..cluster.connecting.local import WORKER_BYTES
from ..messages.wording import format_bytes, one_line
from ..stages.limits import FILL
from .plan import NO_METHOD, Plan

_MORE_PARTITIONS = "raise partitioning.count"


def refusal(plan: Plan) -> OutOfRoom | None:
    """The error of a plan that cannot succeed; None if it may succeed. `edgemill plan` reports it, and a run ends with
    it.
    """
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
            if alone := plan.programs.in_one_block:
                what, change = f"all edges, which {alone} needs,", f"leave out {alone}"
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


def describe(plan: Plan) -> str:
    """The plan as lines of text."""
    source, graph, capacity = plan.source, plan.graph, plan.capacity
    limit = f"{format_bytes(capacity.memory_bytes)} each" if capacity.memory_bytes else "no limit of memory"
    part = "the largest group" if plan.in_shards else "the partition"
    sample, triangles = "all rows read", f", ~{graph.with_triangles:.0%} of them in triangles"
    all_of_text = not source.is_counted and graph.edges.least == graph.edges.most
    if graph.rows_looked_at < source.rows and not all_of_text:
        triangles = ""
        sample = (
            f"{graph.rows_looked_at:,} of {_rows(source)} read: the figures are estimates; "
            "raise ingest.sample_rows for better ones"
        )
    if source.two_sided:
        triangles = ""
    rows = [
        (
            "input",
            f"{_input(source)}: {_many(len(source.files), 'file')}, {_rows(source)}, "
            f"{format_bytes(source.bytes)}; columns {source.source_column}, {source.target_column} "
            f"({type_name(source.id_type)})",
        ),
        *_how_read(source),
        ("sample", sample),
        ("edges", f"{_count(graph.edges)}{triangles}"),
        ("vertices", _count(graph.vertices)),
        ("workers", f"{capacity.workers} x {_many(capacity.kernel_threads, 'thread')}, {limit}{_left_out(plan)}"),
        ("device", _device(plan)),
        ("blocks", f"{len(plan.blocks)}, at most {_many(plan.block_rows, 'row')}"),
        _partitions(plan),
        ("method", plan.method),
        ("tasks", f"~{_round(plan.tasks):,}, and {_bounding_tasks(plan)}"),
    ]
    if plan.seconds is not None:
        text = f"~{plan.seconds:.2g} s for λ, for ~{_round(graph.triangles or 0):,} triangles"
        if plan.in_bands:
            more = 2 * plan.band_workers
            one, twice = plan.seconds_in_bands(1), plan.seconds_in_bands(more)
            text += f"; ~{one:.2g} s on one worker, ~{twice:.2g} s on {more}"
        if plan.bands_at is not None:
            text += f"; ~{plan.seconds + plan.seconds_saved:.2g} s in shards to the end"
        rows.append(("time", text))
    if plan.programs is not None:
        rows += plan.programs.describe(plan.programs_in_files)
    rows += [
        (
            "memory",
            f"{_bytes(plan.partition_bytes)} for {part}, {_bytes(plan.unspilled_bytes)} a worker, of "
            f"which it may spill all but {_bytes(plan.worker_bytes)}",
        ),
        (
            "scratch",
            f"{_bytes(plan.spilled_bytes)} a worker, {_bytes(plan.checkpoint_bytes)} for checkpoints if it runs long "
            "enough to keep any",
        ),
        ("output", f"{_bytes(graph.output_bytes)}{_free(plan)}"),
        ("fits", fit(plan)),
    ]
    return "\n".join(f"{name:<12} {one_line(text)}" for name, text in rows)


def _partitions(plan: Plan) -> tuple[str, str]:
    if not plan.in_shards:
        return "partitions", f"{plan.partitions}: {plan.reason}"
    where = ", their rows in files" if plan.on_disk else ""
    groups = f"{_many(plan.shards, 'shard')} in {_many(plan.partitions, 'group')}"
    if plan.bands_at is not None:  # the reason ends with what follows the shards
        return "partitions", f"{groups}{where}: {plan.reason}"
    return "partitions", f"{groups}: {plan.reason}{where}"


def _left_out(plan: Plan) -> str:
    """What the workers without a GPU do, if others have one."""
    if not plan.capacity.helpers:
        return ""
    what = "take bands beside them" if plan.band_helpers else "take no part"
    return f"; {_many(plan.capacity.helpers, 'worker')} without a GPU {what}"


def _bounding_tasks(plan: Plan) -> str:
    if plan.in_shards:
        return f"{plan.partitions} that peel, again after each checkpoint"
    one, several = ("peels", "peel") if plan.method == "peel" else ("iterates", "iterate")
    does = one if plan.band_workers == 1 else several
    return f"{plan.band_workers} that {does}, again after each checkpoint"


def _input(source: Source) -> str:
    path = without_passwords(source.path)
    return path if source.table is None else f"{path}: {source.table.kind}"


def _rows(source: Source) -> str:
    return _many(source.rows, "row") if source.is_counted else f"~{_round(source.rows):,} rows"


def _how_read(source: Source) -> list[tuple[str, str]]:
    """The layout of files that are not Parquet, the condition on rows, and notes about guesses."""
    rows = []
    if source.layout is not None:
        estimated = "; the number of rows is an estimate" if not source.is_counted else ""
        rows.append(("format", f"{source.layout.describe()}{estimated}"))
    if source.where is not None:
        left = f"; {_many(source.files_left_out, 'file')} of other partitions not read" if source.files_left_out else ""
        rows.append(("where", f"{source.where.condition.text}{left}"))
    if source.bipartite is not None:
        rows.append(("two sides", "λ by butterflies") if source.two_sided else ("bipartite", source.bipartite))
    if source.directed:
        rows.append(("directed", f"{source.source_column} to {source.target_column}, for programs"))
    return rows + [("note", without_passwords(note)) for note in source.notes]


def _device(plan: Plan) -> str:
    if not plan.device_bytes:
        return "cpu"
    ingest = "rows cleaned and numbered there" if plan.ingest_on_device else "rows cleaned and numbered by the CPU"
    ingest += f" in {plan.buckets} parts" * plan.ingest_in_parts
    room = format_bytes(plan.capacity.device_bytes)
    part = _many(plan.shards_on_a_gpu, "shard") if plan.in_shards else "the partition"
    part += " in compact rows" * plan.compact_rows
    return f"gpu, {_bytes(plan.device_bytes)} of {room} for {part}; {ingest}"


def _free(plan: Plan) -> str:
    return "" if plan.disk_bytes is None else f", its disk has {format_bytes(plan.disk_bytes)}"


def _count(count: EstimatedCount) -> str:
    text = f"~{_round(count.likely):,}"
    return text if count.least == count.most else f"{text}, from {_round(count.least):,} to {_round(count.most):,}"


def _round(number: int) -> int:
    """Round to three significant digits, the precision of an estimate."""
    return int(float(f"{number:.3g}"))


def _bytes(number: int) -> str:
    count, unit = format_bytes(number).split()
    return f"~{float(count):.3g} {unit}" if number else "0 B"


def _many(count: int, thing: str) -> str:
    return f"{count:,} {thing}{'' if count == 1 else 's'}"
