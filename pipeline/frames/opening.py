"""The input of a run or plan, opened by its footers. Imports no kernels."""

from __future__ import annotations

from ...tasks.errors import InputAbsent, InputIncomplete
from ...tasks.inputs.complete import refuse_unmarked
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Source
from ...tasks.publish.writing import VALUE_COLUMNS
from ..settings.models import Settings


def open_input(settings: Settings) -> Source:
    """Open the input by its footers. Raises InputError; InputIncomplete without the required marker or rows."""
    given = settings.input
    if given.complete_marker is not None:
        refuse_unmarked(given.path, given.complete_marker, given.storage_options)
    columns = given.source_column, given.target_column
    version, form = given.table_version, given.form
    try:
        source = open_source(given.path, *columns, given.storage_options, VALUE_COLUMNS, version, form)
    except InputAbsent as error:
        if given.least_rows is None:
            raise
        raise InputIncomplete(f"{error}: run again when input.least_rows, {given.least_rows:,}, are there") from error
    refuse_few_rows(source, given.least_rows)
    return source


def refuse_few_rows(source: Source, least: int | None) -> None:
    """Raises InputIncomplete if the input has fewer rows than the settings ask for."""
    if least is None:
        return
    from ...tasks.ingest.reading import count_rows  # loads the kernels

    rows = count_rows(source)
    if rows < least:
        raise InputIncomplete(
            f"input {source.path!r} is not complete: it has {rows:,} rows, and {least:,} are asked for "
            "(input.least_rows); run again when they are there"
        )
