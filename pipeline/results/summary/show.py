"""`edgemill show`: the first groups of a finished run, then its counts and λ, and details of the run on request."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

from rich.bar import Bar
from rich.console import Console
from rich.table import Table
from rich.text import Text

from ...messages.wording import one_line
from ...output.manifest import Manifest, StreamRecord
from ..group_tables import distribution, top_of_column
from ..program_columns import ColumnSummary, facts_text, summaries
from ..result import Result
from ..terminal_table import grid
from .run_end import dropped_rows, groups_grid, groups_title, print_section

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
    counts, files = manifest.counts, manifest.input.files
    table = Table.grid(padding=(0, 3))
    table.add_row("output", Text(one_line(path)))
    if not manifest.converged:
        state = f"NOT CONVERGED: {'; '.join(manifest.unfinished)}"
        table.add_row("state", Text(one_line(state), "bold red"))
    table.add_row("finished", f"{manifest.finished:%Y-%m-%d %H:%M:%S} UTC after {manifest.seconds:.2f} s")
    ids = f"{manifest.input.source_column}, {manifest.input.target_column} ({manifest.input.id_type})"
    size, plural = sum(file.bytes for file in files), "" if len(files) == 1 else "s"
    table_read = "" if manifest.input.table is None else f"{manifest.input.table}: "
    read = f"{table_read}{len(files)} file{plural}, {size:,} bytes, {counts.rows:,} rows; columns {ids}"
    if manifest.input.frame is not None:
        read = f"{manifest.input.frame.origin}; columns {ids}"
    table.add_row("input", Text(one_line(read)))
    if manifest.input.where is not None:
        left = manifest.input.where.files_left_out
        skipped = f"; {left:,} {'file' if left == 1 else 'files'} of other partitions not read" if left else ""
        table.add_row("where", Text(one_line(f"{manifest.input.where.condition}{skipped}")))
    for note in manifest.input.notes:
        table.add_row("note", Text(one_line(note)))
    table.add_row("dropped", dropped_rows(counts) or "no row")
    if (vertices := manifest.input.vertices) is not None:
        gaps = f"{vertices.unknown:,} rows of other ids, {vertices.missing:,} vertices without a row"
        table.add_row("attributes", Text(one_line(f"{', '.join(vertices.columns)} ({vertices.rows:,} rows; {gaps})")))
    triangles = "" if counts.triangles is None else f", {counts.triangles:,} triangles"
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
    if manifest.programs:
        ran = [
            f"{one.name} ({', '.join([*one.columns, *one.edge_columns])}; supersteps: {one.supersteps:,})"
            for one in manifest.programs
        ]
        table.add_row("programs", Text(one_line(", ".join(ran))))
        for one in manifest.programs:
            equal = [column.constant for column in columns if column.program == one.name and column.constant]
            if told := ", ".join([facts_text(one.facts)] * bool(one.facts) + equal):
                table.add_row(f"  {one.name}", Text(one_line(told)))
    if detail:
        table.add_row("device", Text(one_line(manifest.device)))
    return table


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
