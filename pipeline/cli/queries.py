"""Queries on dense groups and on changes: `edgemill top`, `of` and `diff`."""

from __future__ import annotations

from typing import Any

import click

from ..messages.wording import one_line, shown
from ..monitor.terminal import echo
from .options import console, debug, json_rows, print_json


def _member_count(ctx: click.Context, parameter: click.Parameter, text: str | None) -> int | None:
    """Callback of `--members`: a number ≥ 0, or _NO_VALUE for the option without a value."""
    if text is None:
        return None
    if text and not (text.isascii() and text.isdecimal() and len(text) < 10):
        raise click.BadParameter(f"{shown(text)} is not a number; write --members after OUT to give it no number")
    return int(text) if text else _NO_VALUE


_NO_VALUE = -1


@click.command()
@click.argument("out")
@click.option(
    "--by",
    default="lambda",
    metavar="ORDER",
    show_default=True,
    help="lambda, size (number of vertices) or density; or a column of a vertex program, which lists vertices.",
)
@click.option("--count", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="Number of rows.")
@click.option(
    "--members",
    is_flag=False,
    flag_value="",
    callback=_member_count,
    metavar="[N]",
    help="Show N members of each. Without N: 10, with --json all. Default: 3 in a table, none with --json.",
)
@json_rows
@debug
def top(out: str, by: Any, count: int, members: int | None, as_json: bool) -> None:
    """List the top DN-graphs of a result, or the top vertices by a column of a vertex program.

    They are those of the result OUT with the highest λ, the most vertices or the highest density. Members are sorted by
    id and shown by their labels, if the result has some. edgemill members lists all members of one group, sorted by
    their number of edges inside it.
    """
    from ..results.group_tables import dn_graphs_table, vertices_table
    from ..results.groups.top_members import with_members
    from ..results.groups.values import json_rows_of
    from ..results.queries import top as top_dn_graphs
    from ..results.result import Result
    from ..results.terminal_table import print_whole

    result = Result(out)
    found = top_dn_graphs(result, by, count)
    if by not in ("lambda", "size", "density"):  # vertices, or edges
        print_json(json_rows_of(found)) if as_json else print_whole(console(), vertices_table(found))
        return
    rows = found.to_pylist()
    if as_json:
        print_json(rows if not members else with_members(result, rows, None if members == _NO_VALUE else members))
        return
    shown = {None: 3, _NO_VALUE: 10}.get(members, members)
    print_whole(console(), dn_graphs_table(with_members(result, rows, shown) if shown else rows, result.in_series))


@click.command("of", context_settings={"ignore_unknown_options": True})
@click.argument("out")
@click.argument("vertex")
@click.option("--count", "-n", type=click.IntRange(min=1), help="Number of groups. Default: all.")
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="L",
    help="Show only the group at level L: the connected component of edges with λ ≥ L, in the (L + 2)-truss.",
)
@json_rows
@debug
def groups_of(out: str, vertex: str, count: int | None, level: int | None, as_json: bool) -> None:
    """List the groups that contain a vertex.

    They are the groups of the result OUT that contain VERTEX, from the innermost to its connected component. Of a
    result without λ, the command shows the values of VERTEX. Write -- before an id that looks like an option.
    """
    from dataclasses import asdict

    from ..results import queries
    from ..results.group_tables import groups_table, vertex_line
    from ..results.groups.attributes import labels_of
    from ..results.groups.values import json_row
    from ..results.result import Result
    from ..results.terminal_table import print_whole

    if level is not None and count is not None:
        raise click.UsageError("--level selects one group: leave out --count")
    result = Result(out)
    found = queries.find_vertex(result, vertex)
    if not result.manifest.has_lambda and level is None and count is None:
        values = {"id": found.id, "degree": found.degree, **found.values}
        print_json([json_row(values)]) if as_json else print_whole(console(), vertex_line(found))
        return
    if level is None:
        groups = queries.groups_of(result, found, count)
    else:
        group = queries.group_at(result, found, level)
        groups = [] if group is None else [group]
    if as_json:
        print_json(asdict(group) for group in groups)
        return
    output = console()
    output.print(vertex_line(found, labels_of(result, [found.id])[0]))
    if groups:
        print_whole(output, groups_table(groups))
    elif level is not None and found.component is not None:
        echo(f"The vertex is in no group at level {level}: its lambda is {found.lam}.")
    else:
        echo("The vertex has no edges, so it is in no group.")


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--output", metavar="FOLDER", help="Write the changes as Parquet to a new folder or URL.")
@click.option("--overwrite", is_flag=True, help="Replace FOLDER if it holds an earlier comparison.")
@click.option(
    "--tolerance",
    type=float,
    default=1e-9,
    show_default=True,
    metavar="SHARE",
    help="Floats of programs that differ by at most this share of the larger one are unchanged.",
)
@json_rows
@debug
def diff(old: str, new: str, output: str | None, overwrite: bool, tolerance: float, as_json: bool) -> None:
    """Compare two results.

    Counts the edges and DN-graphs that appeared, vanished, rose or fell in λ from OLD to NEW, and the vertices whose
    columns of vertex programs changed. DN-graphs are matched by their members. The exit code is 0 whether or not
    anything changed.
    """
    from ..results.compare.diff import diff as compare
    from ..results.group_tables import changes_table, columns_table
    from ..results.terminal_table import print_whole

    found = compare(old, new, output, overwrite, tolerance)
    for notice in found.notices:
        echo(f"Notice: {one_line(notice)}", err=True)
    if as_json:
        print_json([found.as_dict()])
        return
    print_whole(console(), changes_table(found))
    if found.vertices is not None:
        echo("")
        print_whole(console(), columns_table(found.vertices))
        echo(f"Floats that differ by at most {found.vertices.tolerance:g} of the larger one are unchanged.")
