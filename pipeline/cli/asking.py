"""Questions about dense groups and what changed: `edgemill top`, `of`, `subgraph` and `diff`."""

from __future__ import annotations

import sys
from typing import Any

import click

from ..escaping import one_line
from ..terminal import Binary, tell
from .options import console, debug, json_rows, print_json

__all__ = ["diff", "groups_of", "subgraph", "top"]


@click.command()
@click.argument("out")
@click.option(
    "--by",
    type=click.Choice(["lambda", "size", "density"]),
    default="lambda",
    show_default=True,
    help="Size: vertices.",
)
@click.option("--count", "-n", type=click.IntRange(min=1), default=20, show_default=True, help="How many.")
@json_rows
@debug
def top(out: str, by: Any, count: int, as_json: bool) -> None:
    """List the first DN-graphs of the result OUT by λ, number of vertices or density, best first."""
    from ..asking import top as first
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import dn_graphs_table

    result = Result(out)
    rows = first(result, by, count).to_pylist()
    print_json(rows) if as_json else print_whole(console(), dn_graphs_table(rows, result.in_series))


@click.command("of", context_settings={"ignore_unknown_options": True})
@click.argument("out")
@click.argument("vertex")
@click.option("--count", "-n", type=click.IntRange(min=1), help="How many; left out: all.")
@json_rows
@debug
def groups_of(out: str, vertex: str, count: int | None, as_json: bool) -> None:
    """List the groups of the result OUT that VERTEX is in, innermost first, up to its connected component.

    Put -- before an id that is spelt like an option.
    """
    from dataclasses import asdict

    from .. import asking
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import groups_table, vertex_line

    result = Result(out)
    found = asking.find_vertex(result, vertex)
    groups = asking.groups_of(result, found, count)
    if as_json:
        print_json(asdict(group) for group in groups)
        return
    there = console()
    there.print(vertex_line(found))
    if groups:
        print_whole(there, groups_table(groups))
    else:
        there.print("It has no edges, so it is in no group.")


@click.command()
@click.argument("out")
@click.option("--dn-graph", type=int, metavar="ID", help="The DN-graph of that id.")
@click.option("--component", type=int, metavar="ID", help="Any component of the hierarchy in its place.")
@click.option(
    "--format", "form", type=click.Choice(["parquet", "graphml", "csv"]), help="Left out: as FILE ends, or csv."
)
@click.option("--output", metavar="FILE", help="A new file, or its URL; left out: standard output.")
@click.option("--overwrite", is_flag=True, help="Replace FILE, once the new one is complete.")
@debug
def subgraph(
    out: str, dn_graph: int | None, component: int | None, form: Any, output: str | None, overwrite: bool
) -> None:
    """Write the edges of one dense group of the result OUT, with their support and λ."""
    from .. import asking
    from ..graph_files import format_of, write_group
    from ..new_place import new_file
    from ..result import Result

    if (dn_graph is None) == (component is None):
        raise click.UsageError("say which group: --dn-graph ID or --component ID")
    form = form or format_of(output)
    if output is None and form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is nothing for a terminal: say --output FILE")
    result = Result(out)
    if dn_graph is not None:
        group = asking.find_dn_graph(result, dn_graph)
    else:
        group = asking.find_group(result, component or 0)
    if output is None:
        out_there = Binary()
        write_group(result, group, out_there, form)
        out_there.flush()  # here a full disk has an exit code
        return
    with new_file(output, overwrite, [result.place]) as file:
        write_group(result, group, file, form)


@click.command()
@click.argument("old")
@click.argument("new")
@click.option("--output", metavar="FOLDER", help="New folder or URL for Parquet files of what changed.")
@click.option("--overwrite", is_flag=True, help="Replace FOLDER, if it is of an earlier comparison.")
@json_rows
@debug
def diff(old: str, new: str, output: str | None, overwrite: bool, as_json: bool) -> None:
    """Count the edges and DN-graphs that appeared, vanished, rose or fell in λ from the result OLD to the result NEW.

    DN-graphs are told by their members. The exit code is 0 whether or not anything changed.
    """
    from ..comparing import diff as compare
    from ..show import print_whole
    from ..show_groups import changes_table

    found = compare(old, new, output, overwrite)
    for notice in found.notices:
        tell(f"Notice: {one_line(notice)}", err=True)
    print_json([found.as_dict()]) if as_json else print_whole(console(), changes_table(found))
