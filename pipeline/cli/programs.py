"""`edgemill programs`."""

from __future__ import annotations

import click

from ..monitor.terminal import echo
from .options import debug


@click.command()
@debug
def programs() -> None:
    """List the vertex programs.

    Each comes with the vertex columns that it adds and its settings. `run --programs` runs them.
    """
    from ..messages.docstrings import field_docstrings
    from ..programs.catalogue import CATALOGUE
    from ..settings.models import SECTIONS

    echo("lambda\n  λ of every edge, and dense groups; always computed")
    for name, entry in CATALOGUE.items():
        echo(f"\n{name}\n  {entry.title}")
        for column in entry.columns:
            echo(f"  column   {column.name} ({column.kind}): {column.meaning}")
        if entry.section is not None:
            section = SECTIONS[entry.section]
            docstrings = field_docstrings(section)
            for setting, field in section.model_fields.items():
                shown = "null" if field.default is None else field.default
                echo(f"  setting  {entry.section}.{setting} ({shown}): {docstrings[setting]}")
