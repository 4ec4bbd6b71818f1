"""Open an input: find its files, read their heads, and check that together they hold edges.

What the input does not say is derived here: row layouts, id prefixes, and notes on what was guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from typing import Any

import pyarrow as pa

from ..errors import UsageError
from ..where.condition import parse_where
from ..where.expression import RowFilter
from .columns import choose_columns, refuse_columns, refuse_folder_columns, refuse_reserved, refuse_two_sets
from .finding import find_input
from .formats.form import Form, Layout
from .formats.input_format import is_text
from .head import Head, read_heads
from .partitions import prune_files, texts_of_path
from .sources import FOOTER_READERS, Source, SourceFile, text_ids_note
from .types import end_types, filter_of, id_bytes, id_range, input_type, most_id_bytes, refuse_form, refuse_weights

_DEFAULTS = Form()


def id_prefixes(ends: tuple[str, str]) -> tuple[str, str]:
    """A prefix for the ids of each column, so that no id of one column equals an id of the other. Raises UsageError."""
    first, second = (f"{column}:" for column in ends)
    if first.startswith(second) or second.startswith(first):
        raise UsageError(
            f"input.bipartite is prefix, and ids of columns {ends[0]!r} and {ends[1]!r} could still be equal: "
            "rename one column"
        )
    return first, second


def row_layout(
    format: str,
    heads: Sequence[Head],
    ends: tuple[str, str],
    id_type: pa.DataType,
    where: RowFilter | None,
    weight: Sequence[str] = (),
    form: Form = _DEFAULTS,
) -> Layout | None:
    """The layout of the rows, with the types of the columns that a run reads; None for Parquet. `weight` names the
    column of weights, if any, and `form` is what the settings say.
    """
    if format == "parquet":
        return None
    text = heads[0].text
    if text is None:
        return Layout(format)
    types = dict.fromkeys(ends, id_type)
    for name, kind in where.types if where is not None else ():
        if where is not None and name in where.columns:
            types.setdefault(name, kind)
    types.update(dict.fromkeys(weight, pa.float64()))
    return Layout(
        format,
        text.delimiter,
        text.header,
        next((head.text.comment for head in heads if head.text is not None and head.text.comment), ""),
        tuple(types.items()),
        form.strip,
        comment_is_guessed=form.comment is None and format != "jsonl",
        types_are_guessed=form.id_type == "auto",
    )


def _text_ids_notes(heads: Sequence[Head], ends: tuple[str, str], form: Form) -> list[str]:
    """The note for ids that are text in the first rows of some file, if some of them look like integers."""
    written = [
        (head.path, column, head.text.written[column])
        for head in heads
        for column in ends
        if head.text is not None and column in head.text.written
    ]
    if form.id_type != "auto" or not any(own.is_like_integers for *_, own in written):
        return []
    for path, column, own in written:
        if own.other is not None:
            return [text_ids_note(f"{path}: line {own.line:,}", own.other, column)]
    return []


def guess_notes(heads: Sequence[Head], ends: tuple[str, str], form: Form) -> tuple[str, ...]:
    """Sentences on what was guessed about text, with the setting that says otherwise."""
    notes = []
    text, first = heads[0].text, heads[0]
    columns = ", ".join(first.names)
    if text is not None and text.delimiter and not text.header and form.header is None:
        notes.append(f"{first.path} has no names of columns in its first line: they are called {columns}")
    elif text is not None and not text.header_certain:
        notes.append(
            f"the first line of {first.path} is taken as the names of its columns, {columns}: "
            "if it is a row, say --set input.header=false"
        )
    return (*notes, *_text_ids_notes(heads, ends, form))


def open_source(
    path: str | Sequence[str],
    source_column: str | None = None,
    target_column: str | None = None,
    storage_options: Mapping[str, Any] | None = None,
    reserved: Collection[str] = (),
    table_version: int | None = None,
    form: Form = _DEFAULTS,
) -> Source:
    """Describe an input: a file, folder, glob or fsspec URL, or several of these. Reads footers of Parquet files and
    the beginning of other files.

    A folder is searched at any depth; names that start with "." or "_" are skipped. A Delta or Iceberg table has the
    files of its version `table_version`, or of the current one. Columns that are not named are USUAL_COLUMNS, or the
    only two. `reserved` are names that the output uses itself. `form` is what the settings say about the files and
    which rows they select.

    Raises InputAbsent, an InputError, if nothing is found; InputError if a file cannot be read, a column is missing or
    has an unusable type, or the files of a table have rows that are deleted; UsageError for a table that cannot be
    read, a part of a table, a `table_version` without a table, or a condition that does not fit the columns.
    """
    options = dict(storage_options or {})
    condition = None if form.where is None else parse_where(form.where)
    path, found, live = find_input(path, options, form.format, table_version)
    refuse_form(form, found.format, path, is_table=live is not None)
    pruned = prune_files(found, condition, live)
    with (
        nullcontext() if live is None else live.all_there(),
        ThreadPoolExecutor(min(FOOTER_READERS, len(pruned.paths))) as readers,
    ):
        heads = read_heads(readers, pruned.paths, found.format, form, options)
    names = heads[0].names if live is None else list(live.columns)
    folders = () if live is not None else tuple(texts_of_path(found.root, found.paths[0]))
    source_column, target_column, notes = choose_columns(pruned.paths[0], names, source_column, target_column, folders)
    ends = source_column, target_column
    refuse_two_sets(path, ends, form.bipartite is not None)
    refuse_reserved(path, ends, reserved)
    weight = () if form.weights is None else (form.weights.column,)
    refuse_folder_columns(path, found.paths[0], names, folders, (*ends, *weight))
    ids: dict[str, pa.DataType] = {}
    if is_text(found.format):
        ids = dict.fromkeys(ends, input_type(heads, end_types(heads, ends, found.format, form), found.format, form))
    where = None if condition is None else filter_of(condition, heads, pruned, ids)
    if live is not None:
        refuse_columns(live, heads, (*ends, *weight, *(where.columns if where is not None else ())))
    types = end_types(heads, ends, found.format, form)
    common = input_type(heads, types, found.format, form)
    if form.weights is not None:
        refuse_weights(heads, ends, form.weights.column)
    prefixes = id_prefixes(ends) if form.bipartite == "prefix" else None
    ids_are_text = prefixes is not None or not pa.types.is_integer(common)
    files = tuple(
        SourceFile(
            head.path,
            head.bytes,
            head.row_groups,
            head.version,
            id_bytes(heads, head, ends, prefixes) if ids_are_text else (),
            head.spans,
            head.names if is_text(found.format) else (),
            constants,
            head.matrix,
            "\n" if head.text is None else head.text.line_end,
        )
        for head, constants in zip(heads, pruned.constants, strict=True)
    )
    return Source(
        path,
        files,
        source_column,
        target_column,
        common if prefixes is None else pa.string(),
        options,
        id_range=None if ids_are_text else id_range(heads, types),
        most_id_bytes=most_id_bytes(heads, set(ends), prefixes) if ids_are_text else None,
        table=None if live is None else live.table,
        format=found.format,
        layout=row_layout(found.format, heads, ends, common, where, weight, form),
        where=where,
        files_left_out=pruned.left_out,
        bipartite=form.bipartite,
        directed=form.directed,
        weights=form.weights,
        prefixes=prefixes,
        notes=(*guess_notes(heads, ends, form), *notes),
    )
