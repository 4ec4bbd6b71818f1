"""What the commands print of a result: the end of `edgemill run`, `edgemill show` and `edgemill status`."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from datetime import datetime, timedelta
from itertools import accumulate
from typing import Any

from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...tasks.tracks import Fates
from ..compare.diff import Diff
from ..compare.vertices import ColumnChanges, VertexChanges
from ..messages.terminal import grid, print_whole
from ..messages.wording import one_line
from ..monitor.progress import Progress
from ..monitor.status import CheckpointStatus, Status
from ..output.manifest import Counts, Manifest, ProgramRecord, StreamRecord
from ..queries.attributes import as_text
from ..queries.group_tables import IdList, distribution, top_of_column
from ..queries.groups import top, with_members
from ..queries.program_columns import ColumnSummary, facts_text, summaries, value_text
from ..results.result import Result
from ..settings.setting_names import with_flags


def print_ending(
    manifest: Manifest,
    path: str,
    report: str | None,
    groups: Sequence[Mapping[str, Any]],
    more: Sequence[str],
    out: str,
    console: Console,
) -> None:
    """Print counts, groups and next commands.

    The result is at `path`, `out` is its path as the user wrote it, and `report` is the path of its report. The lines
    `more` follow the counts.
    """
    for line in (*summary_lines(manifest, path, report), *more):
        console.print(Text(line), soft_wrap=True)
    if groups:
        console.print()
        print_section(console, groups_title(manifest, len(groups)), groups_grid(groups))
    console.print()
    console.print(Text("next", "bold"))
    commands = _next(out, groups[0]["id"] if groups else None, manifest.has_lambda)
    width = max(map(len, commands))
    for command, purpose in commands.items():  # soft_wrap keeps commands whole
        console.print(Text(f"  {command:<{width}}   ").append(purpose, "dim"), soft_wrap=True)


def summary_lines(manifest: Manifest, path: str, report: str | None = None) -> list[str]:
    """Counts, λ, time and paths as lines of plain text."""
    return [f"{name:<11} {one_line(value)}" for name, value in _rows(manifest, path, report).items()]


def print_section(console: Console, title: str, body: RenderableType) -> None:
    """Print a title, and the body indented below it."""
    console.print(Text(title, "bold"))
    print_whole(console, Padding(body, (0, 0, 0, 2), expand=False))


def groups_title(manifest: Manifest, shown: int) -> str:
    """The title of the table of the first `shown` groups."""
    count = manifest.dense.dn_graphs if manifest.dense else shown
    if count == 1:
        return "the only DN-graph"
    return f"the {count:,} DN-graphs" if shown >= count else f"first {shown} of {count:,} DN-graphs, by lambda"


def groups_grid(groups: Sequence[Mapping[str, Any]]) -> Table:
    """A table with a row for each group, with as many members as fit."""
    table = grid("DN-graph>", "lambda>", "vertices>", "edges>", "density>", "members")
    for group in groups:
        sizes = (f"{group[name]:,}" for name in ("lambda", "vertices", "edges"))
        ids = group["first_members"]
        names = [label or id for id, label in zip(ids, group.get("first_labels", [None] * len(ids)), strict=True)]
        table.add_row(str(group["id"]), *sizes, f"{group['density']:.3f}", IdList(names, group["vertices"]))
    return table


def dropped_rows(counts: Counts) -> str:
    """The numbers of dropped input rows by reason, as text; empty if no row was dropped."""
    reasons = [
        (counts.duplicates, "duplicate", "duplicates"),
        (counts.self_loops, "self-loop", "self-loops"),
        (counts.nulls_dropped, "row with a null id", "rows with a null id"),
        (counts.filtered, "row that does not meet the condition", "rows that do not meet the condition"),
    ]
    return ", ".join(f"{number:,} {one if number == 1 else many}" for number, one, many in reasons if number)


def _stopped(program: ProgramRecord) -> str:
    """What ended a program other than its convergence. Labels, for example, stop after 10 iterations by default."""
    if not program.converged:
        return " (ended by a limit)"
    iterations = program.parameters.get("iterations")
    return "" if iterations is None or program.supersteps < iterations else f" (stopped after {iterations} iterations)"


def _rows(manifest: Manifest, path: str, report: str | None) -> dict[str, str]:
    """Name → value of each line."""
    counts = manifest.counts
    rows = {"edges": f"{counts.edges:,}", "vertices": f"{counts.vertices:,}"}
    if counts.figures is not None:
        rows[manifest.measure] = f"{counts.figures:,}"
    if manifest.has_lambda:
        high = "" if manifest.lambda_high is None else f" to {manifest.lambda_high.max:,}"
        rows["lambda max"] = f"{manifest.lam.max:,}{high}"
    if manifest.dense:
        rows["DN-graphs"] = f"{manifest.dense.dn_graphs:,}"
    if manifest.programs:
        rows["programs"] = ", ".join(f"{one.name}{_stopped(one)}" for one in manifest.programs)
    if dropped := dropped_rows(counts):
        rows["dropped"] = dropped
    rows |= {"seconds": f"{manifest.seconds:.2f}", "output": path}
    return rows if report is None else rows | {"report": report}


def _next(out: str, best: int | None, lam: bool) -> dict[str, str]:
    """Commands to try next, each with its purpose."""
    name = shlex.quote(one_line(out))
    details = "counts, edges by lambda" if lam else "counts, columns of the programs"
    commands = {f"edgemill show {name}": f"details: {'groups, ' * lam}{details}"}
    if best is not None:
        commands[f"edgemill top {name}"] = "all groups, by lambda, size or density"
        commands[f"edgemill members {name} {best}"] = "members of the first one"
        commands[f"edgemill explore {name}"] = "explore them in a browser"
    return commands


MOST_BARS = 20
MOST_PARTITIONS = 16
MOST_VERTICES = 5
"""Vertices or groups of a column of a program, at most."""


def show_result(
    result: Result, path: str, console: Console, groups: Sequence[Mapping[str, Any]], detail: bool = False
) -> None:
    """As `print_result`, with the columns of the result's programs. Raises InputError for damage."""
    print_result(result.manifest, path, console, groups, detail, summaries(result, MOST_VERTICES))


def print_result(
    manifest: Manifest,
    path: str,
    console: Console,
    groups: Sequence[Mapping[str, Any]] = (),
    detail: bool = False,
    columns: Sequence[ColumnSummary] = (),
) -> None:
    """Print groups, counts, the distribution of λ, and the top of the programs' `columns`.

    `detail` adds the distributions of columns, partitions, exchanges and stages.
    """
    if groups:
        print_section(console, groups_title(manifest, len(groups)), groups_grid(groups))
        console.print()
    print_section(console, "result", _counts(manifest, path, detail, columns))
    sections = []
    if manifest.has_lambda and manifest.lam.histogram:
        title = "edges by lambda" if manifest.exact else "edges by lambda, lower ends"
        sections.append((title, _histogram(manifest.lam.histogram)))
    for column in columns:
        if column.constant:
            continue  # in one line with the facts of its program
        sections.append((_title(column), top_of_column(column)))
        if detail and column.ranges:
            sections.append((f"distribution of {one_line(column.name)}", distribution(column)))
    if detail:
        if manifest.has_lambda:
            sections += [(f"{_part(manifest)}s", _partitions(manifest)), ("bounding", _bounding(manifest))]
        sections.append(("stages", _stages(manifest)))
    for title, body in sections:
        console.print()
        print_section(console, title, body)


def _title(column: ColumnSummary) -> str:
    name = one_line(column.name)
    if column.groups is None:
        return f"{column.rows} of highest {name}"
    return f"{name}: {column.groups:,} group{'' if column.groups == 1 else 's'}, the largest first"


def _counts(manifest: Manifest, path: str, detail: bool, columns: Sequence[ColumnSummary]) -> Table:
    counts = manifest.counts
    table = Table.grid(padding=(0, 3))
    table.add_row("output", Text(one_line(path)))
    if not manifest.converged:
        state = f"NOT CONVERGED: {'; '.join(manifest.unfinished)}"
        table.add_row("state", Text(one_line(state), "bold red"))
    table.add_row("finished", f"{manifest.finished:%Y-%m-%d %H:%M:%S} UTC after {manifest.seconds:.2f} s")
    for name, text in _input_rows(manifest):
        table.add_row(name, text if name == "dropped" else Text(one_line(text)))
    triangles = "" if counts.figures is None else f", {counts.figures:,} {manifest.measure}"
    table.add_row("graph", f"{counts.edges:,} edges, {counts.vertices:,} vertices{triangles}")
    if manifest.has_lambda:
        top = f"up to {manifest.lam.max:,}"
        if manifest.lambda_high is not None:
            top += f"; upper ends up to {manifest.lambda_high.max:,}"
        table.add_row("lambda", top)
    if manifest.how_bounded is not None and (stream := manifest.how_bounded.estimates) is not None:
        table.add_row("estimate", one_line(_estimate(stream)))
    if manifest.dense is not None:
        dense = manifest.dense
        inside = f"{dense.dn_graphs:,} DN-graphs, {dense.members:,} vertices in them"
        plural = "" if dense.roots == 1 else "s"
        table.add_row("groups", f"{inside}; {dense.roots:,} connected component{plural}")
    for name, text in _program_rows(manifest, columns):
        table.add_row(name, Text(one_line(text)))
    if detail:
        table.add_row("device", Text(one_line(manifest.device)))
    return table


def _input_rows(manifest: Manifest) -> Iterator[tuple[str, str]]:
    given, counts = manifest.input, manifest.counts
    ids = f"{given.source_column}, {given.target_column} ({given.id_type})"
    size, plural = sum(file.bytes for file in given.files), "" if len(given.files) == 1 else "s"
    table_read = "" if given.table is None else f"{given.table}: "
    read = f"{table_read}{len(given.files)} file{plural}, {size:,} bytes, {counts.rows:,} rows; columns {ids}"
    yield "input", read if given.frame is None else f"{given.frame.origin}; columns {ids}"
    if given.where is not None:
        left = given.where.files_left_out
        skipped = f"; {left:,} {'file' if left == 1 else 'files'} of other partitions not read" if left else ""
        yield "where", f"{given.where.condition}{skipped}"
    yield from (("note", note) for note in given.notes)
    yield "dropped", dropped_rows(counts) or "no row"
    if (vertices := given.vertices) is not None:
        gaps = f"{vertices.unknown:,} rows of other ids, {vertices.missing:,} vertices without a row"
        yield "attributes", f"{', '.join(vertices.columns)} ({vertices.rows:,} rows; {gaps})"


def _program_rows(manifest: Manifest, columns: Sequence[ColumnSummary]) -> Iterator[tuple[str, str]]:
    ran = [
        f"{one.name} ({', '.join([*one.columns, *one.edge_columns])}; supersteps: {one.supersteps:,})"
        for one in manifest.programs
    ]
    if ran:
        yield "programs", ", ".join(ran)
    for one in manifest.programs:
        equal = [column.constant for column in columns if column.program == one.name and column.constant]
        if told := ", ".join([facts_text(one.facts)] * bool(one.facts) + equal):
            yield f"  {one.name}", told


def _histogram(histogram: list[tuple[int, int]]) -> Table:
    """Edges by λ in at most MOST_BARS bars; a bar covers several values of λ if there are more."""
    top = histogram[-1][0]
    width = -(-(top + 1) // MOST_BARS)
    bars = [0] * (top // width + 1)
    for value, edges in histogram:
        bars[value // width] += edges
    table = grid("lambda>", "edges>", "at least>", "")
    at_least = [*accumulate(reversed(bars))][::-1]
    for number, edges in enumerate(bars):
        first, last = number * width, min(number * width + width - 1, top)
        label = str(first) if first == last else f"{first}-{last}"
        table.add_row(label, f"{edges:,}", f"{at_least[number]:,}", Bar(max(bars), 0, edges, width=30))
    return table


def _part(manifest: Manifest) -> str:
    """What the manifest lists as partitions: partitions, or groups of shards."""
    return "partition" if manifest.bounding.shards is None else "group"


def _partitions(manifest: Manifest) -> Table:
    names = ["partition", "owned", "inner", "cut", "vertices"]
    table = grid(*(f"{name}>".replace("partition", _part(manifest)) for name in names))
    for partition in manifest.partitions[:MOST_PARTITIONS]:
        table.add_row(*(f"{getattr(partition, name):,}" for name in names))
    if hidden := manifest.partitions[MOST_PARTITIONS:]:
        sums = (f"{sum(getattr(partition, name) for partition in hidden):,}" for name in names[1:])
        table.add_row(f"{len(hidden)} more", *sums, style="dim")
    return table


def _bounding(manifest: Manifest) -> Table:
    bounding, exchanges = manifest.bounding, manifest.exchanges
    table = Table.grid(padding=(0, 3))
    table.add_column()
    table.add_column(justify="right", no_wrap=True)
    table.add_row("method", one_line(bounding.method))
    table.add_row("steps", f"{bounding.steps:,}")
    if (how := bounding.shards) is None:
        table.add_row("exchanges", f"{bounding.exchanges:,}")
    else:
        table.add_row("shards", f"{how.shards:,}")
        table.add_row("carrier", one_line(how.carrier))
        if how.relayed:
            table.add_row("relayed by threads, because", one_line(how.relayed))
        table.add_row("exchanges", f"{how.exchanges:,}")
        table.add_row("busiest / mean", f"{how.busiest:.2f}")
        if how.handed_over:
            table.add_row("edges left to others", f"{how.handed_over:,}")
    if bounding.compact_rows:
        table.add_row("rows", "compact")
    table.add_row("evaluations", f"{bounding.evaluations:,}")
    if exchanges:  # peeling does not record single exchanges
        table.add_row("messages", f"{sum(exchange.messages for exchange in exchanges):,}")
        table.add_row("bytes", f"{sum(exchange.bytes for exchange in exchanges):,}")
        table.add_row("seconds in exchanges", f"{sum(exchange.seconds for exchange in exchanges):.2f}")
    return table


def _estimate(stream: StreamRecord) -> str:
    text = f"{stream.column}, no bound of lambda, from {stream.permutations:,} permutations"
    if stream.error is None:
        return f"{text}; its error is not known"
    error = stream.error
    return (
        f"{text}; median error {error.median:.1%}, mean {error.mean:.1%}, {error.top_tenth:.1%} in the top tenth; "
        f"{error.exact:.0%} exact, {error.below:.0%} below"
    )


def _stages(manifest: Manifest) -> Table:
    table = grid("stage", "seconds>")
    for stage in manifest.stages:
        table.add_row(one_line(stage.stage), f"{stage.seconds:.2f}")
    table.add_row("outside of stages", f"{manifest.seconds_outside:.2f}")
    table.add_row("the run", f"{manifest.seconds:.2f}")
    if manifest.plan is not None and manifest.plan.seconds is not None:
        table.add_row("without programs", f"{manifest.seconds_for_lambda:.2f}")
        table.add_row("as predicted by the plan", f"{manifest.plan.seconds:.1f}")
    for name, predicted, actual in manifest.predicted_programs:
        table.add_row(one_line(name), f"{actual:.2f}")
        table.add_row("as predicted", f"{predicted:.2f}")
    return table


def top_groups(result: Result, most: int, most_members: int) -> list[dict[str, Any]]:
    """The first `most` DN-graphs by λ, as `edgemill top` orders them; empty if the result has no table of them.

    A group is its row of `Result.dn_graphs` as JSON values, with `first_members`, at most `most_members` ids of its
    vertices, and `first_labels` if the run had labels. Raises InputError for damage.
    """
    if result.manifest.dense is None or not result.manifest.dense.dn_graphs:
        return []
    rows = with_members(result, top(result, "lambda", most).to_pylist(), most_members)
    return [{_NAMES.get(name, name): value for name, value in row.items()} for row in rows]


_NAMES = {"members": "first_members", "labels": "first_labels"}

_STATES = {
    "none": "no run has used this output",
    "running": "running",
    "unknown": "running or dead: its process is on another host or in another container and cannot be checked",
    "dead": "dead: its process is gone; the next run takes over its lock",
    "failed": "failed",
    "finished": "finished",
}


def describe(status: Status, now: datetime) -> str:
    """One line per fact: a name, padded, and its value."""
    return "\n".join(f"{name:<11} {one_line(value)}".rstrip() for name, value in _status_rows(status, now))


def _status_rows(status: Status, now: datetime) -> Iterator[tuple[str, str]]:
    log, result = status.log, status.result
    state = _STATES[status.state]
    if status.state == "finished" and result is not None and not result.converged:
        state += f", not converged: {'; '.join(result.unfinished)}"
    yield "state", state
    if status.owner is not None:
        yield "run", str(status.owner).removeprefix("run ")
    if log is not None:
        yield from _log_rows(status, log, now)
    if status.log_place is not None:
        yield "log", status.log_place
    ended = log if status.state in ("dead", "failed") else None
    follows = ended is not None and result is not None and result.run in (ended.run, ended.existing_run)
    if not follows and (status.state in ("dead", "failed") or status.checkpoint is not None):
        yield "checkpoint", _checkpoint(status.checkpoint)
    if result is not None:
        yield from _result_rows(status, result, follows)
    elif status.state == "none":
        yield "output", status.output


def _log_rows(status: Status, log: Progress, now: datetime) -> Iterator[tuple[str, str]]:
    """Rows on what the log tells of the last run."""
    may_run = status.state in ("running", "unknown")
    if status.state != "finished":
        if status.owner is None:
            yield "run", str(log.run)
        yield from _progress(log, now if may_run else None)
    if may_run:
        if log.waiting is not None:
            yield "waiting", log.waiting
        yield from log.serving.items()
    if log.last_time is not None:
        yield "last event", f"{log.last_event}, {_ago(now - log.last_time)} ({_at(log.last_time)})"
    if status.state == "failed":
        yield "error", with_flags(str(log.error))
        yield "exit code", str(log.exit_code)


def _result_rows(status: Status, result: Manifest, follows: bool) -> Iterator[tuple[str, str]]:
    """Rows on the result of an output. `follows`: the last run failed or was killed after it published the result."""
    if follows:
        yield "result", "complete; later steps may be missing: run the same command again"
    elif status.state != "finished":
        yield "result", f"of an earlier run, {result.run}, until the next result replaces it:"
    else:
        yield "run", result.run
    yield "finished", _at(result.finished)
    for line in summary_lines(result, status.output):
        name, value = line[:11].strip(), line[12:]
        yield name, value


def _progress(log: Progress, now: datetime | None) -> Iterator[tuple[str, str]]:
    stage = None if log.innermost is None else log.stages[log.innermost]
    if stage is not None:
        passed = f", for {_duration(now - stage.started)}" if now and stage.started else ""
        yield "stage", " > ".join(log.active) + passed
    else:
        yield "stage", f"after {log.last_finished}" if log.last_finished else "before the first"
    parts = [f"{stage.done:,}/{stage.tasks:,} tasks"] if stage is not None and stage.tasks else []
    parts += [f"{name} {log.figures[name]:,}" for name in ("level", "step", "exchange") if name in log.figures]
    if log.batch is not None:
        parts.append("{program} batch {done:,}/{batches:,}".format_map(log.batch))
        remaining = None if now is None else log.remaining_seconds("programs", now)
        if remaining is not None:
            parts.append(f"{remaining[0]} {timedelta(seconds=int(remaining[1]))} left of this program")
    if "unsettled" in log.figures:
        parts.append(f"{log.figures['unsettled']:,} edges unsettled")
    if parts:
        yield "progress", "  ".join(parts)


def _checkpoint(checkpoint: CheckpointStatus | None) -> str:
    if checkpoint is None:
        return "none: the next run starts over"
    if checkpoint.what == "damaged":
        return f"{checkpoint.place}, damaged: the next run starts over"
    if checkpoint.what == "unknown":
        return f"in {checkpoint.place}, which cannot be read from here"
    when = f", {_at(checkpoint.time)}" if checkpoint.time else ""
    what = {"edges": "edges", "lambda": "lambda of every edge"}.get(checkpoint.what, "edges and triangles")
    if checkpoint.what == "search":
        parts = [("level", checkpoint.level), ("exchange", checkpoint.exchange)]
        how_far = ", ".join(f"{name} {number:,}" for name, number in parts if number is not None)
        how_far = how_far and f" up to {how_far}"
        unsettled = "" if checkpoint.unsettled is None else f" ({checkpoint.unsettled:,} edges unsettled)"
        what += f", and the search for lambda{how_far}{unsettled}"
    return f"{what}{when}: the same command resumes from it; in {checkpoint.place}"


def _at(time: datetime) -> str:
    return f"{time:%Y-%m-%d %H:%M:%S} UTC"


def _ago(passed: timedelta) -> str:
    seconds = max(0, int(passed.total_seconds()))
    return f"{seconds} s ago" if seconds < 120 else f"{timedelta(seconds=seconds)} ago"


def _duration(passed: timedelta) -> timedelta:
    return timedelta(seconds=int(passed.total_seconds()))


def changes_table(found: Diff) -> Table:
    """Counts of changes, a row for each kind of change. The table fits a terminal, whatever the numbers."""
    given = {"edges": found.edges, "DN-graphs": found.dn_graphs, "vertices": found.vertices}
    sides = {title: changes for title, changes in given.items() if changes is not None}
    fates = {f"groups of {name}": own for name, own in found.program_groups.items()}
    fates |= {} if found.groups is None else {"DN-graphs": found.groups}
    titles = list(dict.fromkeys([*sides, *fates]))
    table = grid("", *(f"{title}>" for title in titles))
    for name in ("old", "new", "unchanged", "appeared", "vanished", "rose", "fell", "changed", "reshaped"):
        counts = [getattr(sides.get(title), name, None) for title in titles]
        if any(count is not None for count in counts):
            table.add_row(name, *("" if count is None else f"{count:,}" for count in counts))
    for field in fields(Fates) if fates else ():
        counts = [getattr(fates.get(title), field.name, None) for title in titles]
        table.add_row(field.name, *("" if count is None else f"{count:,}" for count in counts))
    return table


def columns_table(found: VertexChanges) -> Table:
    """The changes of each column of programs. A column without a number has no rows that rose or fell."""
    names = ("changed", "rose", "fell", "gained", "lost")
    table = grid("column", *(f"{name}>" for name in names), "largest change")
    for column in found.columns:
        counts = (getattr(column, name) for name in names)
        table.add_row(
            Text(one_line(column.name)),
            *("" if count is None else f"{count:,}" for count in counts),
            Text(one_line(change_text(column))),
        )
    return table


def change_text(column: ColumnChanges) -> str:
    """The largest change of a column, or the first one of a column without numbers; empty if there is none."""
    if not column.largest:
        return ""
    first = column.largest[0]
    return f"vertex {as_text(first.id)}: {value_text(first.old)} → {value_text(first.new)}"
