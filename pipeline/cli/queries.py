"""Queries on dense groups and on changes: `edgemill top`, `of`, `diff`, `members`, `subgraph` and `ktruss`.

The commands import what they need inside their functions, so that other commands start fast.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from ..messages.terminal import Binary, echo
from ..messages.wording import one_line, shown
from .options import console, debug, json_rows, print_json

if TYPE_CHECKING:
    from ...tasks.storage.folders import Folder
    from ..queries.group_files import Sink


_output = click.option("--output", metavar="FILE", help="New file or URL. Default: standard output.")
_overwrite = click.option("--overwrite", is_flag=True, help="Replace FILE once the new one is complete.")
_format = click.option(
    "--format",
    "form",
    type=click.Choice(["parquet", "graphml", "csv"]),
    help="Default: by the suffix of FILE, else csv.",
)


_track = click.option(
    "--track", type=int, metavar="N", help="The group with this track, which it keeps from night to night."
)


_groups = click.option(
    "--groups",
    default="lambda",
    metavar="NAME",
    show_default=True,
    help="Those of lambda, core_groups or leiden.",
)


@click.command()
@click.argument("out")
@click.argument("group_id", metavar="[ID]", type=int, required=False)
@_track
@_groups
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
    groups: str,
    limit: int | None,
    as_json: bool,
    output: str | None,
    form: Any,
    overwrite: bool,
) -> None:
    """List the members of a group.

    Each member of the group ID of the result OUT comes with its number of edges inside the group, its number of all
    edges, and its λ. ID is the id of a DN-graph (edgemill top) or of a component of the hierarchy (edgemill of).
    --track N selects a DN-graph, or a group of --groups, instead. Members are sorted by their number of edges inside
    the group, then by id. Vertex attributes are shown too.
    """
    from ..messages.terminal import print_whole
    from ..queries.attributes import json_rows_of
    from ..queries.group_files import format_of, write_table
    from ..queries.group_tables import members_table
    from ..queries.groups import find_group, find_track, members_of
    from ..results.result import Result

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
    group = find_group(result, group_id or 0, groups) if track is None else find_track(result, track, groups)
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
@click.option(
    "--component", type=int, metavar="ID", help="The component of the hierarchy, or of --groups, with this id."
)
@_track
@_groups
@_format
@_output
@_overwrite
@debug
def subgraph(
    out: str,
    dn_graph: int | None,
    component: int | None,
    track: int | None,
    groups: str,
    form: Any,
    output: str | None,
    overwrite: bool,
) -> None:
    """Write the edges of a group.

    The edges of one dense group of the result OUT come with their support and λ. Vertex attributes are included:
    GraphML has them at the vertices, other formats in one column per endpoint.
    """
    from ..queries.group_files import format_of, write_group
    from ..queries.groups import find_dn_graph, find_group, find_track
    from ..results.result import Result

    if [dn_graph, component, track].count(None) != 2:
        raise click.UsageError("name one group: --dn-graph ID, --component ID or --track N")
    if groups != "lambda" and dn_graph is not None:
        raise click.UsageError("--groups needs --component ID or --track N: DN-graphs are of lambda")
    form = form or format_of(output)
    _refuse_terminal(output, form)
    result = Result(out)
    if track is not None:
        group = find_track(result, track, groups)
    elif dn_graph is not None:
        group = find_dn_graph(result, dn_graph)
    else:
        group = find_group(result, component or 0, groups)
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
    from ..messages.terminal import print_whole
    from ..queries.group_files import format_of, write_truss
    from ..queries.group_tables import truss_table
    from ..queries.trusses import ktruss_groups
    from ..results.result import Result

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
    metavar="ORDER",
    help="lambda, size (number of vertices) or density; or a column of a vertex program, which lists vertices. "
    "Default: lambda, with --groups size.",
)
@_groups
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="L",
    help="With --groups: those at level L. Default: communities, or innermost k-cores.",
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
def top(
    out: str, by: str | None, groups: str, level: int | None, count: int, members: int | None, as_json: bool
) -> None:
    """List the top DN-graphs or other groups of a result, or the top vertices by a column of a vertex program.

    They are those of the result OUT with the highest λ, the most vertices or the highest density. Members are sorted by
    id and shown by their labels, if the result has some. edgemill members lists all members of one group, sorted by
    their number of edges inside it.
    """
    from ..messages.terminal import print_whole
    from ..queries.attributes import json_rows_of
    from ..queries.group_tables import dn_graphs_table, listed_groups_table, vertices_table
    from ..queries.groups import top as top_groups
    from ..queries.groups import with_members
    from ..results.result import Result

    result = Result(out)
    if level is not None and groups == "lambda":
        raise click.UsageError("--level is that of --groups core_groups or leiden: name one, or leave it out")
    found = top_groups(result, by, count, groups, level)
    if by not in (None, "lambda", "size", "density"):  # vertices, or edges
        print_json(json_rows_of(found)) if as_json else print_whole(console(), vertices_table(found))
        return
    rows = found.to_pylist()
    if as_json:
        most = None if members == _NO_VALUE else members
        print_json(rows if not members else with_members(result, rows, most, groups, level))
        return
    shown, output = {None: 3, _NO_VALUE: 10}.get(members, members), console()
    found = with_members(result, rows, shown, groups, level) if shown else rows
    fits = members is None and output.is_terminal
    table = dn_graphs_table if groups == "lambda" else listed_groups_table
    print_whole(output, table(found, result.in_series, fits))


@click.command("of", context_settings={"ignore_unknown_options": True})
@click.argument("out")
@click.argument("vertices", metavar="VERTEX...", nargs=-1, required=True)
@click.option("--count", "-n", type=click.IntRange(min=1), help="Number of groups. Default: all.")
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="L",
    help="Show only the group at level L: the connected component of edges with λ ≥ L, in the (L + 2)-truss.",
)
@_groups
@json_rows
@debug
def groups_of(
    out: str, vertices: tuple[str, ...], count: int | None, level: int | None, groups: str, as_json: bool
) -> None:
    """List the groups that contain a vertex, or several vertices at once.

    They are the groups of the result OUT that contain each VERTEX, from the innermost, which is the densest, to the
    connected component. Of a result without λ, the command shows the values of each VERTEX. Write -- before an id that
    looks like an option.
    """
    from dataclasses import asdict

    from ..messages.terminal import print_whole
    from ..queries.attributes import json_row, labels_of
    from ..queries.group_tables import groups_table, vertex_line
    from ..queries.groups import find_vertex, group_at
    from ..queries.groups import groups_of as find_groups
    from ..results.result import Result

    if level is not None and count is not None:
        raise click.UsageError("--level selects one group: leave out --count")
    result = Result(out)
    found = [find_vertex(result, vertex) for vertex in vertices]
    if not result.manifest.has_lambda and level is None and count is None and groups == "lambda":
        if as_json:
            print_json(json_row({"id": own.id, "degree": own.degree, **own.values}) for own in found)
            return
        for own in found:
            print_whole(console(), vertex_line(own))
        return
    if level is None:
        around = find_groups(result, found, count, groups)
    else:
        group = group_at(result, found, level, groups)
        around = [] if group is None else [group]
    if as_json:
        print_json(asdict(group) for group in around)
        return
    output = console()
    for own, label in zip(found, labels_of(result, [own.id for own in found]), strict=True):
        output.print(vertex_line(own, label))
    if around:
        print_whole(output, groups_table(around))
        return
    one, alone = len(found) == 1, [own for own in found if not own.degree]
    if alone:
        name = "The vertex" if one else f"Vertex {one_line(str(alone[0].id))}"
        echo(f"{name} has no edges, so it is in no group.")
    elif one and groups == "lambda":
        echo(f"The vertex is in no group at level {level}: its lambda is {found[0].lam}.")
    elif one:
        echo(f"The vertex is in no group at level {level}.")
    elif level is not None:
        echo(f"No group at level {level} contains all of the vertices.")
    else:
        echo("No group contains all of the vertices: no path connects them.")


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
    from ..compare.diff import diff as compare
    from ..messages.terminal import print_whole
    from .show import changes_table, columns_table

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
