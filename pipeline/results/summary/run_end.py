"""The end of `edgemill run` in a terminal: counts, the first groups, and next commands."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ...messages.wording import one_line
from ...output.manifest import Counts, Manifest
from ..terminal_table import grid, print_whole
from .id_list import IdList


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


def _rows(manifest: Manifest, path: str, report: str | None) -> dict[str, str]:
    """Name → value of each line."""
    counts = manifest.counts
    rows = {"edges": f"{counts.edges:,}", "vertices": f"{counts.vertices:,}"}
    if counts.triangles is not None:
        rows["triangles"] = f"{counts.triangles:,}"
    if manifest.has_lambda:
        high = "" if manifest.lambda_high is None else f" to {manifest.lambda_high.max:,}"
        rows["lambda max"] = f"{manifest.lam.max:,}{high}"
    if manifest.dense:
        rows["DN-graphs"] = f"{manifest.dense.dn_graphs:,}"
    if manifest.programs:
        limits = {True: "", False: " (ended by a limit)"}
        rows["programs"] = ", ".join(f"{one.name}{limits[one.converged]}" for one in manifest.programs)
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
