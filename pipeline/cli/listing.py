"""`edgemill programs`."""

from __future__ import annotations

import click

from ..terminal import tell
from .options import debug

__all__ = ["programs"]


@click.command()
@debug
def programs() -> None:
    """List what `run --programs` can find: names, columns that they add to the vertices, and settings."""
    from ..programs.catalogue import CATALOGUE
    from ..settings import SECTIONS
    from ..wording.meanings import meanings

    tell("lambda\n  λ of every edge, and dense groups: always found")
    for name, entry in CATALOGUE.items():
        tell(f"\n{name}\n  {entry.title}")
        for column in entry.columns:
            tell(f"  column   {column.name} ({column.kind}): {column.meaning}")
        if entry.section is not None:
            section = SECTIONS[entry.section]
            meaning = meanings(section)
            for setting, field in section.model_fields.items():
                shown = "none" if field.default is None else field.default
                tell(f"  setting  {entry.section}.{setting} ({shown}): {meaning[setting]}")
