"""What the page says of the run itself: all from the manifest, and bounded whatever the run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from typing import Any, TypeVar

from ...tasks.passwords import without_passwords
from ..manifest import ExchangeRecord, Manifest, PartitionRecord, ShardsRecord
from .charts import bars, curves, ribbons
from .parts import Section, Table, clipped, counted, duration, number, share, size, span

__all__ = ["bounding", "partitions", "plan", "read", "settings", "stages"]

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
OUTSIDE = "outside of stages"
"""A row beside those of stages, with which they add up to the run."""

T = TypeVar("T")


def read(manifest: Manifest) -> Section:
    """What was read and dropped."""
    counts, files, given = manifest.counts, manifest.input.files, manifest.input
    table = "" if given.table is None else f"{given.table}, at {clipped(given.table.location)}: "
    read = f"{table}{counted(len(files), 'file')}, {size(sum(file.bytes for file in files))}"
    if given.frame is not None:
        read = f"A {clipped(str(given.frame))}, from Python"
    text = [f"{read}, columns {clipped(given.source_column)} and {clipped(given.target_column)} ({given.id_type})."]
    if given.where is not None:
        left = given.where.files_left_out
        others = f"; {counted(left, 'file')} of other partitions not read" if left else ""
        text.append(f"Only rows that meet {clipped(given.where.condition)}{others}.")
    rows = {
        "rows read": counts.rows,
        "self-loops dropped": counts.self_loops,
        "duplicates dropped": counts.duplicates,
        "rows with nulls dropped": counts.nulls_dropped,
        **({} if given.where is None else {"rows left out by the condition": counts.filtered}),
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
    return Section("read", "What was read", text, [], [kept, listed] if files else [kept])


def stages(manifest: Manifest) -> Section:
    """How long each stage took."""
    sums: dict[str, float] = {}
    for stage in manifest.stages:  # one that was done again is there twice
        name = clipped(stage.stage)
        sums[name] = sums.get(name, 0) + stage.seconds
    total = manifest.seconds
    if sums:
        sums[OUTSIDE] = manifest.seconds_outside
    rows = [(name, duration(seconds), share_of_time(seconds, total)) for name, seconds in sums.items()]
    rows.append(("the run", duration(total), share_of_time(total, total)))
    note = (
        f"{OUTSIDE.capitalize()}: code is loaded, workers start, the input is looked at, a stage ends by a lost worker."
    )
    table = Table("Stages", ("stage", "time>", "share>"), rows, note if sums else "")
    start = f"{manifest.started:%Y-%m-%d %H:%M:%S} UTC"
    text = [f"Started {start}, {duration(total)} in all, on {clipped(manifest.device)}."]
    chart = ribbons("Time of each stage", "Wall time by stage, as in the table.", [*sums], [*sums.values()])
    return Section("stages", "Stages", text, [chart] if sums else [], [table], beside=1)


def share_of_time(seconds: float, total: float) -> str:
    """In per cent."""
    return f"{seconds / total:.0%}" if total > 0 else ""


def bounding(manifest: Manifest) -> Section:
    """Steps and exchanges, with edges settled and messages."""
    how, exchanges = manifest.bounding, manifest.exchanges
    if how.shards is not None:
        return _by_shards(manifest, how.shards)
    text = [
        f"Method {how.method}: {counted(how.steps, 'step')}, {counted(how.exchanges, 'exchange')} between partitions, "
        f"{counted(how.evaluations, 'look')} at an edge."
    ]
    if not exchanges:
        text += ["Peeling keeps no record of single exchanges."] if how.exchanges else []
        return Section("bounding", "Steps and exchanges", text, [], [])
    messages = sum(exchange.messages for exchange in exchanges)
    text.append(f"{number(messages)} messages, {size(sum(exchange.bytes for exchange in exchanges))}, were sent.")
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
            "Messages of each exchange, on average where exchanges share a point.",
            last,
            {"messages": [round(sum(one.messages for one in run) / len(run)) for run in points]},
            ("exchange", "messages"),
            logarithmic=False,
            steps=False,
        ),
    ]
    return Section("bounding", "Steps and exchanges", text, charts, [_steps(exchanges)])


def _by_shards(manifest: Manifest, how: ShardsRecord) -> Section:
    """How shards were peeled."""
    steps, seconds = manifest.bounding.steps, sum(exchange.seconds for exchange in manifest.exchanges)
    text = [
        f"Method {manifest.bounding.method}: {counted(steps, 'level')} in {duration(seconds)}, by {_shards(how)}. "
        f"What carried between groups: {_CARRIERS.get(how.carrier, clipped(how.carrier))}."
    ]
    if how.relayed:
        text.append(f"Threads carried what GPUs tell each other, as {clipped(how.relayed)}.")
    rows = [
        ("exchanges: all groups tell each other what to remove", number(how.exchanges)),
        ("rounds: exchanges after which edges were removed", number(how.rounds)),
        ("edges removed", number(manifest.bounding.evaluations)),
        ("alarms: halves of a count so low that the other shard was asked", number(how.alarms)),
        ("reports: losses that were told to the shard that keeps the count", number(how.reports)),
        ("grants: counts that were split again", number(how.grants)),
        ("bytes that groups sent each other", size(how.bytes)),
        ("entries of rows that the busiest shard read, over the mean", f"{how.busiest:.2f}"),
    ]
    return Section("bounding", "Steps and exchanges", text, [], [Table("Peeling by shards", ("", "count>"), rows)])


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
    header = ("step>", "exchanges>", "settled>", "unsettled>", "messages>", "bytes>", "looks>", "time>")
    return Table("Steps, with the exchanges of each", header, rows)


def partitions(manifest: Manifest) -> Section:
    """Balance and replication."""
    found = manifest.partitions
    if manifest.bounding.shards is not None:
        return _groups(manifest, manifest.bounding.shards)
    edges, owned, ghosts = manifest.counts.edges, [p.owned for p in found], sum(p.ghost for p in found)
    if len(found) < 2:
        return Section("partitions", "Partitions", ["One partition holds the whole graph."], [], [])
    mean = edges / len(found)
    text = [
        f"{number(len(found))} partitions hold {(edges + ghosts) / max(1, edges):.2f} copies of each edge on average; "
        f"the largest decides {max(owned) / mean if mean else 1:.2f} times as many edges as the mean."
    ]
    inner, around, cut = (sum(getattr(p, name) for p in found) for name in ("inner", "peripheral", "cut"))
    kinds = Table(
        "Edges by where their triangles lie",
        ("", "edges>", "share>"),
        [
            ("inner: both ends and all common neighbours in one partition", number(inner), share(inner, edges)),
            ("peripheral: both ends in one, a common neighbour elsewhere", number(around), share(around, edges)),
            ("cut: the ends in two partitions", number(cut), share(cut, edges)),
        ],
    )
    ranked = sorted(found, key=lambda p: (-p.owned - p.ghost, p.partition))
    shown, some = _picked(ranked)
    chart = bars(
        "Edges of each partition",
        f"Partitions by the edges they hold, the largest first: their own, and ghosts of others.{some}",
        [str(p.partition) for p in shown],
        {"owned": [p.owned for p in shown], "ghost": [p.ghost for p in shown]},
        "partition",
    )
    names = ("owned", "ghost", "inner", "peripheral", "cut", "vertices")
    table = _ranked("Partitions, the largest first", "partition", ranked, names)
    return Section("partitions", "Partitions", text, [chart], [kinds, table])


def _groups(manifest: Manifest, how: ShardsRecord) -> Section:
    """Balance of groups of shards, which the manifest has as partitions."""
    found = manifest.partitions
    held = sum(p.owned for p in found)
    text = [
        f"The graph is stored once, in {_shards(how)}: {number(held)} edges are in triangles, and "
        f"{number(manifest.counts.edges - held)} are not and need no shard."
    ]
    if len(found) < 2:
        return Section("partitions", "Groups of shards", text, [], [])
    most = max(p.owned for p in found) * len(found) / max(1, held)
    text.append(f"The largest group decides {most:.2f} times as many edges as the mean.")
    ranked = sorted(found, key=lambda p: (-p.owned, p.partition))
    shown, some = _picked(ranked)
    chart = bars(
        "Edges of each group",
        f"Groups of shards by the edges that they decide, the most first.{some}",
        [str(p.partition) for p in shown],
        {"owned": [p.owned for p in shown]},
        "group",
    )
    table = _ranked("Groups, the largest first", "group", ranked, ("owned", "inner", "cut", "vertices"))
    return Section("partitions", "Groups of shards", text, [chart], [table])


def _picked(ranked: Sequence[PartitionRecord]) -> tuple[list[PartitionRecord], str]:
    """As many as a chart has bars for, and a sentence that says so if these are not all."""
    shown = [run[0] for run in _runs(ranked, MOST_BARS)]
    return shown, "" if len(shown) == len(ranked) else f" {len(shown)} of {number(len(ranked))}, evenly picked."


def _ranked(caption: str, one: str, ranked: Sequence[PartitionRecord], names: Sequence[str]) -> Table:
    rows = [(number(p.partition), *(number(getattr(p, name)) for name in names)) for p in ranked[:MOST_PARTITIONS]]
    if rest := ranked[MOST_PARTITIONS:]:
        sums = (number(sum(getattr(p, name) for p in rest)) for name in names)
        rows.append((f"{number(len(rest))} smaller", *sums))
    return Table(caption, (f"{one}>", *(f"{name}>" for name in names)), rows)


def plan(manifest: Manifest) -> Section:
    """What was expected, beside what came."""
    expected, counts = manifest.plan, manifest.counts
    if expected is None:
        text = ["The release that made this result kept no plan."]
        return Section("plan", "Plan and outcome", text, [], [])
    copies = (counts.edges + sum(p.ghost for p in manifest.partitions)) / max(1, counts.edges)
    most = "" if expected.rows_looked_at else "at most "
    rows = [
        ("edges", f"{most}{number(expected.edges)}", number(counts.edges), _off(expected.edges, counts.edges)),
        (
            "vertices",
            f"{most}{number(expected.vertices)}",
            number(counts.vertices),
            _off(expected.vertices, counts.vertices),
        ),
        ("copies of an edge", f"{expected.replication:.2f}", f"{copies:.2f}", _off(expected.replication, copies)),
    ]
    table = Table("Expected before the run, and found", ("", "expected>", "found>", "expected is off by>"), rows)
    looked = f"{number(expected.rows_looked_at)} of {number(counts.rows)} rows were looked at before the run."
    if most:
        looked = "No row had to be looked at before the run: all fits one partition even if each of them is an edge."
    how = manifest.bounding.shards
    parts = counted(len(manifest.partitions), "partition") if how is None else _shards(how)
    text = [
        f"{looked} {parts}: {clipped(expected.reason)}. "
        f"{size(expected.worker_bytes)} of memory were expected of a worker that spills nothing."
    ]
    return Section("plan", "Plan and outcome", text, [], [table])


def settings(manifest: Manifest) -> Section:
    """Settings in effect and versions. The manifest has no secrets; passwords in URLs are left out once more."""
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
    return f"{(expected - found) / found:+.1%}" if found else ""


def _runs(values: Sequence[T], most: int) -> Iterator[Sequence[T]]:
    """The values in at most so many consecutive runs of about one length."""
    runs = min(most, len(values))
    for run in range(runs):
        yield values[run * len(values) // runs : (run + 1) * len(values) // runs]
