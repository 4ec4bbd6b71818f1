"""What `edgemill run` prints at its end: the counts, the first groups, and what to type next."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from ..escaping import one_line
from ..manifest import Counts, Manifest
from ..show import grid, print_whole
from .names import Names

__all__ = ["best_title", "dropped_rows", "groups_grid", "print_ending", "print_section", "summary_lines"]


def print_ending(
    manifest: Manifest,
    path: str,
    report: str | None,
    groups: Sequence[Mapping[str, Any]],
    more: Sequence[str],
    out: str,
    console: Console,
) -> None:
    """Print it. The result is at `path`, and the user calls it `out`; lines in `more` follow those of the result."""
    for line in (*summary_lines(manifest, path, report), *more):
        console.print(Text(line), soft_wrap=True)
    if groups:
        console.print()
        print_section(console, best_title(manifest, len(groups)), groups_grid(groups))
    console.print()
    console.print(Text("next", "bold"))
    commands = _next(out, groups[0]["id"] if groups else None)
    width = max(map(len, commands))
    for command, purpose in commands.items():  # soft_wrap: a command is never cut
        console.print(Text(f"  {command:<{width}}   ").append(purpose, "dim"), soft_wrap=True)


def summary_lines(manifest: Manifest, path: str, report: str | None = None) -> list[str]:
    """What was found, and where it is, in a few plain lines."""
    return [f"{name:<11} {one_line(value)}" for name, value in _rows(manifest, path, report).items()]


def print_section(console: Console, title: str, body: RenderableType) -> None:
    """Print a title, and below it the body, indented."""
    console.print(Text(title, "bold"))
    print_whole(console, Padding(body, (0, 0, 0, 2), expand=False))


def best_title(manifest: Manifest, shown: int) -> str:
    """The title of the first groups."""
    count = manifest.dense.dn_graphs if manifest.dense else shown
    if count == 1:
        return "the only DN-graph"
    return f"the {count:,} DN-graphs" if shown >= count else f"first {shown} of {count:,} DN-graphs, by lambda"


def groups_grid(groups: Sequence[Mapping[str, Any]]) -> Table:
    """A row for each group, with as many members as fit."""
    table = grid("DN-graph>", "lambda>", "vertices>", "edges>", "density>", "members")
    for group in groups:
        sizes = (f"{group[name]:,}" for name in ("lambda", "vertices", "edges"))
        ids = group["first_members"]
        names = [label or id for id, label in zip(ids, group.get("first_labels", [None] * len(ids)), strict=True)]
        table.add_row(str(group["id"]), *sizes, f"{group['density']:.3f}", Names(names, group["vertices"]))
    return table


def dropped_rows(counts: Counts) -> str:
    """The rows of the input that are no edges of the result, and why; empty if there are none."""
    reasons = [
        (counts.duplicates, "duplicate", "duplicates"),
        (counts.self_loops, "self-loop", "self-loops"),
        (counts.nulls_dropped, "row with a null id", "rows with a null id"),
        (counts.filtered, "row that does not meet input.where", "rows that do not meet input.where"),
    ]
    return ", ".join(f"{number:,} {one if number == 1 else many}" for number, one, many in reasons if number)


def _rows(manifest: Manifest, path: str, report: str | None) -> dict[str, str]:
    """What was found, and where it is."""
    counts = manifest.counts
    top = f"{manifest.lam.max:,}"
    if not manifest.converged and manifest.lambda_high is not None:
        top = f"{top} to {manifest.lambda_high.max:,}"
    rows = {
        "edges": f"{counts.edges:,}",
        "vertices": f"{counts.vertices:,}",
        "triangles": f"{counts.triangles:,}",
        "lambda max": top,
    }
    if manifest.dense:
        rows["DN-graphs"] = f"{manifest.dense.dn_graphs:,}"
    if dropped := dropped_rows(counts):
        rows["dropped"] = dropped
    rows |= {"seconds": f"{manifest.seconds:.2f}", "output": path}
    return rows if report is None else rows | {"report": report}


def _next(out: str, best: int | None) -> dict[str, str]:
    """Commands that ask more of the result, and what each is for."""
    name = shlex.quote(one_line(out))
    commands = {f"edgemill show {name}": "more of this: groups, counts, edges by lambda"}
    if best is not None:
        commands[f"edgemill top {name}"] = "all groups, by lambda, size or density"
        commands[f"edgemill members {name} {best}"] = "who is in the first one"
        commands[f"edgemill explore {name}"] = "look at them in a browser"
    return commands
