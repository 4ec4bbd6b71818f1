"""What an input does not say and edgemill derives: row layouts, id prefixes, and notes on what was guessed."""

from __future__ import annotations

from collections.abc import Sequence

import pyarrow as pa

from ..errors import UsageError
from ..where.filter import RowFilter
from .formats.form import Form
from .formats.layout import Layout
from .head import Head
from .sources import text_ids_note

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
