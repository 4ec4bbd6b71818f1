"""What is in groups: `edgemill members`, `subgraph` and `ktruss`."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..terminal import Binary, tell
from .options import console, debug, json_rows, print_json

if TYPE_CHECKING:
    from ...tasks.places import Place
    from ..groups.files import Sink

__all__ = ["ktruss", "members", "subgraph"]

_output = click.option("--output", metavar="FILE", help="A new file, or its URL; left out: standard output.")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace FILE, once the new one is complete.")
_format = click.option(
    "--format", "form", type=click.Choice(["parquet", "graphml", "csv"]), help="Left out: as FILE ends, or csv."
)


_track = click.option(
    "--track", type=int, metavar="N", help="The DN-graph of that track, which it keeps over a series of nights."
)


@click.command()
@click.argument("out")
@click.argument("group_id", metavar="[ID]", type=int, required=False)
@_track
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="The first N; left out: 20 in the table, else all.",
)
@json_rows
@click.option("--output", metavar="FILE", help="Write the members to a new file, Parquet or CSV, or to its URL.")
@click.option(
    "--format", "form", type=click.Choice(["parquet", "csv"]), help="Of --output; left out: as FILE ends, or csv."
)
@_overwrite
@debug
def members(
    out: str,
    group_id: int | None,
    track: int | None,
    limit: int | None,
    as_json: bool,
    output: str | None,
    form: Any,
    overwrite: bool,
) -> None:
    """List the vertices in the group ID of the result OUT: their edges inside it, all their edges, and their λ.

    ID is that of a DN-graph (see edgemill top) or of any component of the hierarchy (see edgemill of); --track N names
    a DN-graph in its place. The members with the most edges inside come first, then by id. Attributes of vertices are
    shown with them.
    """
    from .. import asking
    from ..groups.files import format_of, write_table
    from ..groups.members import members_of
    from ..groups.spelling import json_rows_of
    from ..nights.finding import find_track
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import members_table

    if (group_id is None) == (track is None):
        raise click.UsageError("say which group: its ID, or --track N")
    if output is not None and as_json:
        raise click.UsageError("--json goes to standard output: leave out --output, or --json")
    if output is None and (form is not None or overwrite):
        raise click.UsageError("--format and --overwrite are for --output FILE: give that, too")
    form = form or format_of(output)
    if form == "graphml":
        raise click.UsageError("members are a table: name FILE .parquet or .csv, or use edgemill subgraph for GraphML")
    result = Result(out)
    group = find_track(result, track) if track is not None else asking.find_group(result, group_id or 0)
    if output is not None or as_json:
        found = members_of(result, group, limit)
        if as_json:
            print_json(json_rows_of(found))
            return
        with _file(output, overwrite, result.place) as file:
            write_table(found, file, form)
        return
    shown = limit or _SHOWN
    print_whole(console(), members_table(members_of(result, group, shown)))
    if limit is None and group.vertices > shown:
        tell(f"{shown} of {group.vertices:,} members; --limit {group.vertices} lists all", err=True)


_SHOWN = 20


@click.command()
@click.argument("out")
@click.option("--dn-graph", type=int, metavar="ID", help="The DN-graph of that id.")
@click.option("--component", type=int, metavar="ID", help="Any component of the hierarchy in its place.")
@_track
@_format
@_output
@_overwrite
@debug
def subgraph(
    out: str,
    dn_graph: int | None,
    component: int | None,
    track: int | None,
    form: Any,
    output: str | None,
    overwrite: bool,
) -> None:
    """Write the edges of one dense group of the result OUT, with their support and λ.

    Attributes of vertices come with them: in GraphML at the vertices, else in a column for each end.
    """
    from .. import asking
    from ..groups.files import format_of, write_group
    from ..nights.finding import find_track
    from ..result import Result

    if [dn_graph, component, track].count(None) != 2:
        raise click.UsageError("say which group: --dn-graph ID, --component ID or --track N")
    form = form or format_of(output)
    _refuse_terminal(output, form)
    result = Result(out)
    if track is not None:
        group = find_track(result, track)
    elif dn_graph is not None:
        group = asking.find_dn_graph(result, dn_graph)
    else:
        group = asking.find_group(result, component or 0)
    with _file(output, overwrite, result.place) as file:
        write_group(result, group, file, form)


@click.command()
@click.argument("out")
@click.option("-k", required=True, type=click.IntRange(min=2), metavar="K", help="Least truss number; 2: all edges.")
@click.option("--component", type=int, metavar="ID", help="One connected component of it alone, by its id.")
@click.option("--list", "as_list", is_flag=True, help="List its connected components in place of the edges.")
@click.option("--json", "as_json", is_flag=True, help="With --list: print a JSON object a line.")
@_format
@_output
@_overwrite
@debug
def ktruss(
    out: str,
    k: int,
    component: int | None,
    as_list: bool,
    as_json: bool,
    form: Any,
    output: str | None,
    overwrite: bool,
) -> None:
    """Write the edges of the K-truss of the result OUT, with their support and λ, or list its connected components.

    K counts as in NetworkX and cuGraph: each edge of the K-truss is in at least K - 2 triangles of the K-truss, so the
    K-truss is the edges with λ of K - 2 or more.
    """
    from ..groups.files import format_of, write_truss
    from ..groups.trusses import ktruss_groups
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import truss_table

    if as_list and (component is not None or form or output or overwrite):
        raise click.UsageError("--list prints a table: leave out --component, --format, --output and --overwrite")
    if as_json and not as_list:
        raise click.UsageError("--json is for --list; edges are written as --format csv, parquet or graphml")
    form = form or format_of(output)
    if not as_list:
        _refuse_terminal(output, form)
    result = Result(out)
    if not as_list:
        with _file(output, overwrite, result.place) as file:
            write_truss(result, k, component, file, form)
        return
    rows = ktruss_groups(result, k)
    if as_json:
        print_json(rows.to_pylist())
    elif len(rows):
        print_whole(console(), truss_table(rows.to_pylist()))
    else:
        tell(f"The {k}-truss has no edges: the highest k is {result.manifest.lam.max + 2}.")


def _refuse_terminal(output: str | None, form: str) -> None:
    if output is None and form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet is not for a terminal: add --output FILE")


@contextmanager
def _file(output: str | None, overwrite: bool, result: Place) -> Iterator[Sink]:
    """The file to write, or standard output. Raises as `new_file` does."""
    from ..new_place import new_file

    if output is None:
        there = Binary()
        yield there
        there.flush()  # here a full disk has an exit code
        return
    with new_file(output, overwrite, [result]) as file:
        yield file
