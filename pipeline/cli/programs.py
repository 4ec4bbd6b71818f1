"""`edgemill programs`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from ..monitor.terminal import echo
from .options import debug

if TYPE_CHECKING:
    from ..programs.catalogue import Entry


@click.command()
@click.option("--program", "own", multiple=True, metavar="MODULE:CLASS", help="List your own program, too.")
@debug
def programs(own: tuple[str, ...]) -> None:
    """List the vertex programs.

    Each comes with the columns that it adds and its settings. `run --programs` runs them. Installed programs,
    entry points of the group `edgemill.programs`, are among them.
    """
    from ..messages.docstrings import field_docstrings
    from ..programs.catalogue import CATALOGUE
    from ..programs.own import find_own, installed_names
    from ..settings.models import SECTIONS

    echo("lambda\n  λ of every edge, and dense groups; the default")
    for name, entry in CATALOGUE.items():
        _print(name, entry)
        if entry.section is not None:
            section = SECTIONS[entry.section]
            docstrings = field_docstrings(section)
            for setting, field in section.model_fields.items():
                shown = "null" if field.default is None else field.default
                echo(f"  setting  {entry.section}.{setting} ({shown}): {docstrings[setting]}")
    for name, program in find_own(own, installed_names()).items():
        _print(name, program.entry())
        for setting, (_, default) in program.parameters.items():
            shown = "required" if default is ... else "null" if default is None else default
            echo(f"  setting  {name}.{setting} ({shown})")


def _print(name: str, entry: Entry) -> None:
    echo(f"\n{name}\n  {entry.title}")
    for column in entry.columns:
        echo(f"  column   {column.name} ({column.kind}): {column.meaning}")
    for column in entry.edges:
        echo(f"  column   {column.name} ({column.kind}), of edges: {column.meaning}")
