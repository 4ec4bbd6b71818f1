"""`edgemill programs`."""

from __future__ import annotations

import click

from ..monitor.terminal import echo
from .options import debug


@click.command()
@click.option("--program", "own", multiple=True, metavar="MODULE:CLASS", help="List your own program, too.")
@debug
def programs(own: tuple[str, ...]) -> None:
    """List the vertex programs.

    Each comes with the columns that it adds and its settings. `run --programs` runs them. Installed programs,
    entry points of the group `edgemill.programs`, are among them.
    """
    from ..programs.declared import find_programs, installed_names, shipped_names

    echo("lambda\n  λ of every edge, and dense groups; the default")
    for program in find_programs(own, [*shipped_names(), *installed_names()]).values():
        echo(f"\n{program.name}\n  {program.title}")
        for column in program.columns:
            echo(f"  column   {column.name} ({column.kind}): {column.meaning}")
        for column in program.edge_columns:
            echo(f"  column   {column.name} ({column.kind}), of edges: {column.meaning}")
        for name, parameter in program.parameters.items():
            shown = {...: "required", None: "null"}.get(parameter.default, parameter.default)
            echo(f"  setting  {program.name}.{name} ({shown}){': ' if parameter.meaning else ''}{parameter.meaning}")
