"""The summary of a finished run, for a terminal."""

from __future__ import annotations

from itertools import accumulate

from rich.bar import Bar
from rich.console import Console, RenderableType
from rich.measure import Measurement
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from .escaping import one_line
from .manifest import Manifest

__all__ = ["grid", "print_result", "print_whole", "summary_lines"]

MOST_BARS = 20
MOST_PARTITIONS = 16
_WIDE = 10_000


def summary_lines(manifest: Manifest, path: str) -> list[str]:
    """A few plain lines: what `edgemill run` prints at its end."""
    counts = manifest.counts
    top = f"{manifest.lam.max:,}"
    if not manifest.converged and manifest.lambda_high is not None:
        top = f"{top} to {manifest.lambda_high.max:,}"
    rows = {
        "edges": f"{counts.edges:,}",
        "vertices": f"{counts.vertices:,}",
        "triangles": f"{counts.triangles:,}",
        "lambda max": top,
        **({"DN-graphs": f"{manifest.dense.dn_graphs:,}"} if manifest.dense else {}),
        "seconds": f"{manifest.seconds:.2f}",
        "output": path,
    }
    return [f"{name:<11} {one_line(value)}" for name, value in rows.items()]


def print_result(manifest: Manifest, path: str, console: Console) -> None:
    """Print counts, the distribution of λ, partitions, exchanges and stages."""
    parts: list[tuple[str, RenderableType]] = [("", _counts(manifest, path))]
    if manifest.lam.histogram:
        parts.append(("lambda" if manifest.converged else "lambda, lower ends", _histogram(manifest.lam.histogram)))
    parts += [
        (f"{_part(manifest)}s", _partitions(manifest)),
        ("bounding", _bounding(manifest)),
        ("stages", _stages(manifest)),
    ]
    for title, body in parts:
        if title:
            console.print(Text(f"\n{title}", "bold"))
        print_whole(console, Padding(body, (0, 0, 0, 2 if title else 0), expand=False))


def print_whole(console: Console, body: RenderableType) -> None:
    """Print at least as wide as its numbers need: a terminal breaks lines where it must, and no digit is cut off."""
    least, width = Measurement.get(console, console.options.update(width=_WIDE), body).minimum, console.width
    console.width = max(width, least)
    console.print(body)
    console.width = width


def grid(*columns: str) -> Table:
    """A table without lines; columns whose names end in ">" are of numbers: flush right, and in one line."""
    table = Table(box=None, padding=(0, 3, 0, 0), pad_edge=False, show_header=any(columns), header_style="dim")
    for name in columns:
        number = name.endswith(">")
        table.add_column(name.rstrip(">"), justify="right" if number else "left", no_wrap=number)
    return table


def _counts(manifest: Manifest, path: str) -> Table:
    counts, files = manifest.counts, manifest.input.files
    table = Table.grid(padding=(0, 3))
    state = Text("converged", "green")
    if not manifest.converged:
        state = Text(f"NOT CONVERGED: {manifest.unsettled:,} edges have an interval in place of lambda", "bold red")
    table.add_row("result", Text(one_line(path)))
    table.add_row("state", state)
    table.add_row("finished", f"{manifest.finished:%Y-%m-%d %H:%M:%S} UTC after {manifest.seconds:.2f} s")
    table.add_row("device", Text(one_line(manifest.device)))
    columns = f"{manifest.input.source_column}, {manifest.input.target_column} ({manifest.input.id_type})"
    size, plural = sum(file.bytes for file in files), "" if len(files) == 1 else "s"
    table_read = "" if manifest.input.table is None else f"{manifest.input.table}: "
    read = f"{table_read}{len(files)} file{plural}, {size:,} bytes, {counts.rows:,} rows; columns {columns}"
    table.add_row("input", Text(one_line(read)))
    if manifest.input.where is not None:
        left = manifest.input.where.files_left_out
        others = f"; {left:,} files not read" if left else ""
        table.add_row("where", Text(one_line(f"{manifest.input.where.condition}{others}")))
    for note in manifest.input.notes:
        table.add_row("note", Text(one_line(note)))
    dropped = {"self-loops": counts.self_loops, "duplicates": counts.duplicates, "nulls": counts.nulls_dropped}
    if manifest.input.where is not None:
        dropped["by input.where"] = counts.filtered
    table.add_row("dropped", ", ".join(f"{number:,} {name}" for name, number in dropped.items()))
    table.add_row("graph", f"{counts.edges:,} edges, {counts.vertices:,} vertices, {counts.triangles:,} triangles")
    top = f"max {manifest.lam.max:,}, sum {manifest.lam.sum:,}"
    if manifest.lambda_high is not None:
        top += f"; upper ends: max {manifest.lambda_high.max:,}, sum {manifest.lambda_high.sum:,}"
    table.add_row("lambda", top)
    if manifest.dense is not None:
        dense = manifest.dense
        graphs = f"{dense.dn_graphs:,} DN-graphs, {dense.members:,} vertices in them"
        table.add_row("groups", f"{graphs}; {dense.components:,} components, {dense.roots:,} of the whole graph")
    return table


def _histogram(histogram: list[tuple[int, int]]) -> Table:
    """Edges per λ; neighbouring values share a bar where there are too many of them."""
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
    """What a partition of the manifest is."""
    return "partition" if manifest.bounding.shards is None else "group"


def _partitions(manifest: Manifest) -> Table:
    names = ["partition", "owned", "ghost", "inner", "peripheral", "cut", "vertices"]
    if manifest.bounding.shards is not None:
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
        table.add_row("exchanges", f"{how.exchanges:,}")
        table.add_row("busiest / mean", f"{how.busiest:.2f}")
    table.add_row("evaluations", f"{bounding.evaluations:,}")
    if exchanges:  # peeling keeps no record of single ones
        table.add_row("messages", f"{sum(exchange.messages for exchange in exchanges):,}")
        table.add_row("bytes", f"{sum(exchange.bytes for exchange in exchanges):,}")
        table.add_row("seconds in exchanges", f"{sum(exchange.seconds for exchange in exchanges):.2f}")
    return table


def _stages(manifest: Manifest) -> Table:
    table = grid("stage", "seconds>")
    for stage in manifest.stages:
        table.add_row(one_line(stage.stage), f"{stage.seconds:.2f}")
    table.add_row("outside of stages", f"{manifest.seconds_outside:.2f}")
    table.add_row("the run", f"{manifest.seconds:.2f}")
    return table
