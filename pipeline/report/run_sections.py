"""The sections about the run. They come from the manifest, and their length is bounded."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from ...tasks.storage.passwords import without_passwords
from ..output.manifest import BATCH, BandsRecord, ExchangeRecord, Manifest, PartitionRecord, ShardsRecord
from .charts import bars, curves, stage_bars
from .parts import Section, Table, clipped, counted, duration, number, share, size, span

MOST_FILES = 10
MOST_STEPS = 24
MOST_POINTS = 300
MOST_BARS = 48
MOST_PARTITIONS = 16
_CARRIERS = {
    "memory": "the memory of one process",
    "mailboxes": "the memory of GPUs",
    "shared-memory": "memory that the workers of a host share",
    "dask": "Dask's connections",
    "nccl": "NCCL",
}
"""Carrier of messages → its name on the page."""
OUTSIDE = "outside of stages"
"""A row for the time outside of stages. With it, the stages add up to the run."""

T = TypeVar("T")


def read(manifest: Manifest) -> Section:
    """The input, and the rows that were dropped."""
    counts, files, source = manifest.counts, manifest.input.files, manifest.input
    table = "" if source.table is None else f"{source.table}, at {clipped(source.table.location)}: "
    read = f"{table}{counted(len(files), 'file')}, {size(sum(file.bytes for file in files))}"
    if source.frame is not None:
        read = f"{'An' if source.frame.kind == BATCH else 'A'} {clipped(source.frame.origin)}"
    text = [f"{read}, columns {clipped(source.source_column)} and {clipped(source.target_column)} ({source.id_type})."]
    if source.where is not None:
        left = source.where.files_left_out
        others = f"; {counted(left, 'file')} of other partitions not read" if left else ""
        text.append(f"Only rows that meet {clipped(source.where.condition)}{others}.")
    rows = {
        "rows read": counts.rows,
        "self-loops dropped": counts.self_loops,
        "duplicates dropped": counts.duplicates,
        "rows with nulls dropped": counts.nulls_dropped,
        **({} if source.where is None else {"rows left out by the condition": counts.filtered}),
        "edges kept": counts.edges,
    }
    kept = Table(
        "Rows of the input",
        ("", "rows>", "share>"),
        [(name, number(count), share(count, counts.rows)) for name, count in rows.items()],
    )
    left = len(files) - MOST_FILES
    more = f"{counted(left, 'more file')} {'is' if left == 1 else 'are'}"
    listed = Table(
        "Files of the input",
        ("file", "rows>", "bytes>"),
        [
            (clipped(without_passwords(file.path)), "" if file.rows is None else number(file.rows), number(file.bytes))
            for file in files[:MOST_FILES]
        ],
        f"{more} in the manifest." if len(files) > MOST_FILES else "",
    )
    return Section("read", "Input", text, [], [kept, listed] if files else [kept])


def stages(manifest: Manifest) -> Section:
    """The time of each stage."""
    sums: dict[str, float] = {}
    for stage in manifest.stages:  # a repeated stage is listed twice
        name = clipped(stage.stage)
        sums[name] = sums.get(name, 0) + stage.seconds
    total = manifest.seconds
    if sums:
        sums[OUTSIDE] = manifest.seconds_outside
    rows = [(name, duration(seconds), share_of_time(seconds, total)) for name, seconds in sums.items()]
    rows.append(("the run", duration(total), share_of_time(total, total)))
    note = (
        f"{OUTSIDE.capitalize()}: loading code, starting workers, inspecting the input, and stages that a lost worker "
        "ended."
    )
    table = Table("Stages", ("stage", "time>", "share>"), rows, note if sums else "")
    start = f"{manifest.started:%Y-%m-%d %H:%M:%S} UTC"
    text = [f"The run started {start} and took {duration(total)} on {clipped(manifest.device)}."]
    chart = stage_bars("Time of each stage", "Wall time by stage, as in the table.", [*sums], [*sums.values()])
    return Section("stages", "Stages", text, [chart] if sums else [], [table], beside=1)


def share_of_time(seconds: float, total: float) -> str:
    """A share of the run's time in per cent; empty for a run of 0 seconds."""
    return f"{seconds / total:.0%}" if total > 0 else ""


def bounding(manifest: Manifest) -> Section:
    """Steps and exchanges, with settled edges and messages."""
    how, exchanges = manifest.bounding, manifest.exchanges
    if how.shards is not None:
        return _by_shards(manifest, how.shards)
    text = [
        f"Method {how.method}: {counted(how.steps, 'step')}, {counted(how.exchanges, 'exchange')}, "
        f"{counted(how.evaluations, 'evaluation')} of edges."
    ]
    if not exchanges:
        text += ["Peeling does not record single exchanges."] if how.exchanges else []
        return Section("bounding", "Steps and exchanges", text, [], [])
    messages = sum(exchange.messages for exchange in exchanges)
    text.append(f"Workers sent {number(messages)} messages, {size(sum(exchange.bytes for exchange in exchanges))}.")
    points = [*_runs(exchanges, MOST_POINTS)]
    last = [run[-1].exchange for run in points]
    charts = [
        curves(
            "Edges settled",
            "Edges whose λ is known after each exchange.",
            last,
            {"settled": [run[-1].settled for run in points]},
            ("exchange", "edges"),
            logarithmic=False,
            steps=False,
        ),
        curves(
            "Messages",
            "Messages of each exchange; their mean where several exchanges share a point.",
            last,
            {"messages": [round(sum(one.messages for one in run) / len(run)) for run in points]},
            ("exchange", "messages"),
            logarithmic=False,
            steps=False,
        ),
    ]
    return Section("bounding", "Steps and exchanges", text, charts, [_steps(exchanges)])


def _by_shards(manifest: Manifest, how: ShardsRecord) -> Section:
    """The peeling of shards."""
    steps, seconds = manifest.bounding.steps, sum(exchange.seconds for exchange in manifest.exchanges)
    text = [
        f"Method {manifest.bounding.method}: {counted(steps, 'level')} in {duration(seconds)}, by {_shards(how)}. "
        f"Groups sent messages through {_CARRIERS.get(how.carrier, clipped(how.carrier))}."
    ]
    if how.relayed:
        text.append(f"Threads relayed messages between GPUs, because {clipped(how.relayed)}.")
    if how.handed_over:
        by = "one worker peeled alone" if (bands := manifest.bounding.bands) is None else _bands(bands)
        text.append(f"Shards stopped when {counted(how.handed_over, 'edge')} were left, which {by}.")
    rows = [
        ("exchanges: all groups send each other the edges to remove", number(how.exchanges)),
        ("rounds: exchanges after which edges were removed", number(how.rounds)),
        ("edges removed", number(manifest.bounding.evaluations)),
        ("alarms: half counts so low that the shard asked the other shard", number(how.alarms)),
        ("reports: losses sent to the shard that keeps the count", number(how.reports)),
        ("grants: counts that were split again", number(how.grants)),
        ("bytes that groups sent each other", size(how.bytes)),
        ("row entries that the busiest shard read, over the mean", f"{how.busiest:.2f}"),
    ]
    return Section("bounding", "Steps and exchanges", text, [], [Table("Peeling by shards", ("", "count>"), rows)])


def _bands(how: BandsRecord) -> str:
    passes = f"{counted(how.passes, 'pass', 'passes')} of the filter and {counted(how.exchanges, 'exchange')}"
    return f"{counted(how.workers, 'worker')} peeled in {counted(how.bands, 'band')} of λ, after {passes}"


def _shards(how: ShardsRecord) -> str:
    return f"{counted(how.shards, 'shard')} in {counted(how.groups, 'group')}"


def _steps(exchanges: Sequence[ExchangeRecord]) -> Table:
    by_step = [[*run] for _, run in groupby(exchanges, lambda exchange: exchange.step)]
    rows = []
    for steps in _runs(by_step, MOST_STEPS):
        run = [exchange for step in steps for exchange in step]
        rows.append(
            (
                span(run[0].step, run[-1].step),
                span(run[0].exchange, run[-1].exchange),
                number(run[-1].settled),
                number(run[-1].unsettled),
                number(sum(exchange.messages for exchange in run)),
                number(sum(exchange.bytes for exchange in run)),
                number(sum(exchange.evaluations for exchange in run)),
                duration(sum(exchange.seconds for exchange in run)),
            )
        )
    header = ("step>", "exchanges>", "settled>", "unsettled>", "messages>", "bytes>", "evaluations>", "time>")
    return Table("Steps, with the exchanges of each", header, rows)


def partitions(manifest: Manifest) -> Section:
    """The balance of groups of shards."""
    if manifest.bounding.shards is not None:
        return _groups(manifest, manifest.bounding.shards)
    text = "One partition holds the whole graph."
    if len(manifest.partitions) > 1:  # of an earlier release
        text = f"The graph was divided into {number(len(manifest.partitions))} partitions."
    return Section("partitions", "Partitions", [text], [], [])


def _groups(manifest: Manifest, how: ShardsRecord) -> Section:
    """The balance of groups of shards, which the manifest lists as partitions."""
    found = manifest.partitions
    stored = sum(p.owned for p in found)
    text = [
        f"The graph is stored once, in {_shards(how)}: {number(stored)} edges are in triangles, and "
        f"{number(manifest.counts.edges - stored)} are not, and no shard holds them."
    ]
    if len(found) < 2:
        return Section("partitions", "Groups of shards", text, [], [])
    most = max(p.owned for p in found) * len(found) / max(1, stored)
    text.append(f"The largest group owns {most:.2f} times as many edges as the mean.")
    ranked = sorted(found, key=lambda p: (-p.owned, p.partition))
    shown, some = _picked(ranked)
    chart = bars(
        "Edges of each group",
        f"Edges that each group of shards owns, largest first.{some}",
        [str(p.partition) for p in shown],
        {"owned": [p.owned for p in shown]},
        "group",
    )
    table = _ranked("Groups, the largest first", "group", ranked, ("owned", "inner", "cut", "vertices"))
    return Section("partitions", "Groups of shards", text, [chart], [table])


def _picked(ranked: Sequence[PartitionRecord]) -> tuple[list[PartitionRecord], str]:
    """At most MOST_BARS partitions for a chart, and a sentence if these are not all of them."""
    shown = [run[0] for run in _runs(ranked, MOST_BARS)]
    if len(shown) == len(ranked):
        return shown, ""
    return shown, f" The chart shows {len(shown)} of {number(len(ranked))}, at even intervals."


def _ranked(caption: str, one: str, ranked: Sequence[PartitionRecord], names: Sequence[str]) -> Table:
    rows = [(number(p.partition), *(number(getattr(p, name)) for name in names)) for p in ranked[:MOST_PARTITIONS]]
    if rest := ranked[MOST_PARTITIONS:]:
        sums = (number(sum(getattr(p, name) for p in rest)) for name in names)
        rows.append((f"{number(len(rest))} smaller", *sums))
    return Table(caption, (f"{one}>", *(f"{name}>" for name in names)), rows)


def plan(manifest: Manifest) -> Section:
    """The plan's estimates beside the outcome."""
    expected, counts = manifest.plan, manifest.counts
    if expected is None:
        text = ["The release that made this result did not record its plan."]
        return Section("plan", "Plan and outcome", text, [], [])
    most = "" if expected.rows_looked_at else "at most "
    rows = [
        ("edges", f"{most}{number(expected.edges)}", number(counts.edges), _off(expected.edges, counts.edges)),
        (
            "vertices",
            f"{most}{number(expected.vertices)}",
            number(counts.vertices),
            _off(expected.vertices, counts.vertices),
        ),
    ]
    if expected.triangles is not None and counts.triangles is not None:
        off = _off(expected.triangles, counts.triangles)
        rows.append(("triangles", number(expected.triangles), number(counts.triangles), off))
    if expected.seconds is not None:
        took = manifest.seconds_for_lambda
        rows.append(("seconds for λ", f"{expected.seconds:.1f}", f"{took:.1f}", _off(expected.seconds, took)))
    for name, before, took in manifest.predicted_programs:
        rows.append((f"seconds of {clipped(name)}", f"{before:.2f}", f"{took:.2f}", _off(before, took)))
    table = Table("Expected before the run, and found", ("", "expected>", "found>", "error>"), rows)
    looked = f"The plan read {number(expected.rows_looked_at)} of {number(counts.rows)} rows."
    if most:
        looked = "The plan read no row: all rows fit one worker, even if each of them is an edge."
    how = manifest.bounding.shards if manifest.has_lambda else None
    parts = counted(len(manifest.partitions) or 1, "partition") if how is None else _shards(how)
    text = [
        f"{looked} {parts}: {clipped(expected.reason)}. "
        f"A worker without spilling was expected to need {size(expected.worker_bytes)} of memory."
    ]
    return Section("plan", "Plan and outcome", text, [], [table])


def settings(manifest: Manifest) -> Section:
    """The settings in effect, and versions. The manifest has no secrets; passwords in URLs are removed here again."""
    rows = [(name, clipped(without_passwords(_plain(value)))) for name, value in _dotted(manifest.settings)]
    versions = [*manifest.versions.items()]
    return Section(
        "settings",
        "Settings and versions",
        [],
        [],
        [
            Table("Settings in effect", ("setting", "value"), rows),
            Table("Versions", ("package", "version"), [(clipped(name), clipped(value)) for name, value in versions]),
        ],
        beside=2,
    )


def _dotted(tree: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in tree.items():
        if isinstance(value, dict):
            yield from _dotted(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _plain(value: object) -> str:
    match value:
        case None:
            return "none"
        case bool():
            return str(value).lower()
        case int():
            return number(value)
        case _:
            return str(value)


def _off(expected: float, found: float) -> str:
    """How far off an expectation is: in per cent up to twice of what was found, and as a multiple above."""
    if not found:
        return ""
    return f"{(expected - found) / found:+.1%}" if expected <= 2 * found else f"{expected / found:,.1f} times"


def _runs(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The values in at most `most` consecutive runs of about equal length."""
    runs = min(most, len(values))
    for run in range(runs):
        yield values[run * len(values) // runs : (run + 1) * len(values) // runs]
