"""Questions about dense groups and what changed: `edgemill top`, `of` and `diff`."""

from __future__ import annotations

from typing import Any

import click

from ..escaping import one_line
from ..terminal import tell
from .options import console, debug, json_rows, print_json

__all__ = ["diff", "groups_of", "top"]


def _number(ctx: click.Context, parameter: click.Parameter, given: str | None) -> int | None:
    """A whole number from 0 on, or _NOT_SAID for an option without its value."""
    if given is None:
        return None
    if given and not given.isdecimal():
        raise click.BadParameter(f"{given!r} is not a number from 0 on; put --members after OUT to give no number")
    return int(given) if given else _NOT_SAID


_NOT_SAID = -1


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
@click.option(
    "--members",
    is_flag=False,
    flag_value="",
    callback=_number,
    metavar="[N]",
    help="Show N members of each, 0 for none; left out: 3 in a table; without N: 10, or with --json all.",
)
@json_rows
@debug
def top(out: str, by: Any, count: int, members: int | None, as_json: bool) -> None:
    """List the first DN-graphs of the result OUT by λ, number of vertices or density, best first.

    Members come in the order of their ids, by their labels if the run was given some. See edgemill members for all of
    one group, in the order of their edges inside it.
    """
    from ..asking import top as first
    from ..groups.top_members import with_members
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import dn_graphs_table

    result = Result(out)
    rows = first(result, by, count).to_pylist()
    if as_json:
        print_json(rows if not members else with_members(result, rows, None if members == _NOT_SAID else members))
        return
    most = {None: 3, _NOT_SAID: 10}.get(members, members)
    print_whole(console(), dn_graphs_table(with_members(result, rows, most) if most else rows, result.in_series))


@click.command("of", context_settings={"ignore_unknown_options": True})
@click.argument("out")
@click.argument("vertex")
@click.option("--count", "-n", type=click.IntRange(min=1), help="How many; left out: all.")
@click.option(
    "--level",
    type=click.IntRange(min=0),
    metavar="L",
    help="Only the group at level L: connected edges with λ of L or more, of the (L + 2)-truss.",
)
@json_rows
@debug
def groups_of(out: str, vertex: str, count: int | None, level: int | None, as_json: bool) -> None:
    """List the groups of the result OUT that VERTEX is in, innermost first, up to its connected component.

    Put -- before an id that is spelt like an option.
    """
    from dataclasses import asdict

    from .. import asking
    from ..groups.attributes import labels_of
    from ..result import Result
    from ..show import print_whole
    from ..show_groups import groups_table, vertex_line

    if level is not None and count is not None:
        raise click.UsageError("--level asks for one group: leave out --count")
    result = Result(out)
    found = asking.find_vertex(result, vertex)
    if level is None:
        groups = asking.groups_of(result, found, count)
    else:
        around = asking.group_at(result, found, level)
        groups = [] if around is None else [around]
    if as_json:
        print_json(asdict(group) for group in groups)
        return
    there = console()
    there.print(vertex_line(found, labels_of(result, [found.id])[0]))
    if groups:
        print_whole(there, groups_table(groups))
    elif level is not None and found.component is not None:
        tell(f"It is in no group at level {level}: its lambda is {found.lam}.")
    else:
        tell("It has no edges, so it is in no group.")


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
