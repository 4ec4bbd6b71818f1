"""Contents of groups: `edgemill members`, `subgraph` and `ktruss`.

The commands import what they need inside their functions, so that other commands start fast.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..monitor.terminal import Binary, echo
from .options import console, debug, json_rows, print_json

if TYPE_CHECKING:
    from ...tasks.storage.folders import Folder
    from ..results.groups.files import Sink


_output = click.option("--output", metavar="FILE", help="New file or URL. Default: standard output.")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace FILE once the new one is complete.")
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "graphml", "csv"]),
    help="Default: by the suffix of FILE, else csv.",
)


_track = click.option(
    "--track", type=int, metavar="N", help="The DN-graph with this track, which it keeps from night to night."
)


@click.command()
@click.argument("out")
@click.argument("group_id", metavar="[ID]", type=int, required=False)
@_track
@click.option(
    "--limit",
    type=click.IntRange(min=1),
    metavar="N",
    help="Number of members. Default: 20 in a table, else all.",
)
@json_rows
@click.option("--output", metavar="FILE", help="Write the members to a new Parquet or CSV file, or to a URL.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "csv"]),
    help="Format of --output. Default: by the suffix of FILE, else csv.",
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
    """List the members of a group.

    Each member of the group ID of the result OUT comes with its number of edges inside the group, its number of all
    edges, and its λ. ID is the id of a DN-graph (edgemill top) or of a component of the hierarchy (edgemill of).
    --track N selects a DN-graph instead. Members are sorted by their number of edges inside the group, then by id.
    Vertex attributes are shown too.
    """
    from ..nightly.finding import find_track
    from ..results import queries
    from ..results.group_tables import members_table
    from ..results.groups.files import format_of, write_table
    from ..results.groups.members import members_of
    from ..results.groups.values import json_rows_of
    from ..results.result import Result
    from ..results.terminal_table import print_whole

    if (group_id is None) == (track is None):
        raise click.UsageError("name one group: its ID or --track N")
    if output is not None and as_json:
        raise click.UsageError("--json prints to standard output: leave out --output or --json")
    if output is None and (form is not None or overwrite):
        raise click.UsageError("--format and --overwrite need --output FILE")
    form = form or format_of(output)
    if form == "graphml":
        raise click.UsageError("members are a table: write .parquet or .csv, or use edgemill subgraph for GraphML")
    result = Result(out)
    group = find_track(result, track) if track is not None else queries.find_group(result, group_id or 0)
    if output is not None or as_json:
        found = members_of(result, group, limit)
        if as_json:
            print_json(json_rows_of(found))
            return
        with _open_output(output, overwrite, result.place) as file:
            write_table(found, file, form)
        return
    shown = limit or _SHOWN
    print_whole(console(), members_table(members_of(result, group, shown)))
    if limit is None and group.vertices > shown:
        echo(f"{shown} of {group.vertices:,} members; --limit {group.vertices} lists all", err=True)


_SHOWN = 20


@click.command()
@click.argument("out")
@click.option("--dn-graph", type=int, metavar="ID", help="The DN-graph with this id.")
@click.option("--component", type=int, metavar="ID", help="The component of the hierarchy with this id.")
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
    """Write the edges of a group.

    The edges of one dense group of the result OUT come with their support and λ. Vertex attributes are included:
    GraphML has them at the vertices, other formats in one column per endpoint.
    """
    from ..nightly.finding import find_track
    from ..results import queries
    from ..results.groups.files import format_of, write_group
    from ..results.result import Result

    if [dn_graph, component, track].count(None) != 2:
        raise click.UsageError("name one group: --dn-graph ID, --component ID or --track N")
    form = form or format_of(output)
    _refuse_terminal(output, form)
    result = Result(out)
    if track is not None:
        group = find_track(result, track)
    elif dn_graph is not None:
        group = queries.find_dn_graph(result, dn_graph)
    else:
        group = queries.find_group(result, component or 0)
    with _open_output(output, overwrite, result.place) as file:
        write_group(result, group, file, form)


@click.command()
@click.argument("out")
@click.option(
    "-k", required=True, type=click.IntRange(min=2), metavar="K", help="Truss number, 2 or more; 2 selects all edges."
)
@click.option("--component", type=int, metavar="ID", help="Only the connected component with this id.")
@click.option("--list", "as_list", is_flag=True, help="List the connected components and not the edges.")
@click.option("--json", "as_json", is_flag=True, help="With --list: print one JSON object per line.")
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
    """Write the edges of a K-truss, or list its connected components.

    The edges of the K-truss of the result OUT come with their support and λ. K is defined as in NetworkX and cuGraph:
    each edge of the K-truss is in at least K - 2 of its triangles. The K-truss consists of the edges with λ ≥ K - 2.
    """
    from ..results.group_tables import truss_table
    from ..results.groups.files import format_of, write_truss
    from ..results.groups.trusses import ktruss_groups
    from ..results.result import Result
    from ..results.terminal_table import print_whole

    if as_list and (component is not None or form or output or overwrite):
        raise click.UsageError("--list prints a table: leave out --component, --format, --output and --overwrite")
    if as_json and not as_list:
        raise click.UsageError("--json needs --list; edges are written with --format csv, parquet or graphml")
    form = form or format_of(output)
    if not as_list:
        _refuse_terminal(output, form)
    result = Result(out)
    if not as_list:
        with _open_output(output, overwrite, result.place) as file:
            write_truss(result, k, component, file, form)
        return
    rows = ktruss_groups(result, k)
    if as_json:
        print_json(rows.to_pylist())
    elif len(rows):
        print_whole(console(), truss_table(rows.to_pylist()))
    else:
        echo(f"The {k}-truss has no edges: the highest k is {result.manifest.lam.max + 2}.")


def _refuse_terminal(output: str | None, form: str) -> None:
    if output is None and form == "parquet" and sys.stdout.isatty():
        raise click.UsageError("Parquet cannot be written to a terminal: add --output FILE")


@contextmanager
def _open_output(output: str | None, overwrite: bool, result: Folder) -> Iterator[Sink]:
    """The file to write, or standard output. Raises as `new_file` does."""
    from ..output.new_path import new_file

    if output is None:
        stream = Binary()
        yield stream
        stream.flush()  # raises for a full disk, so that it gets an exit code
        return
    with new_file(output, overwrite, [result]) as file:
        yield file
