"""Open an input: find its files, read their heads, and check that together they hold edges.

What the input does not say is derived here: types of ids and of the columns of a condition, ranges and sizes of ids,
row layouts, id prefixes, and notes on what was guessed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext, suppress
from typing import Any

import pyarrow as pa

from ..errors import InputError, UsageError, clipped
from ..where.condition import Condition, parse_where, refused
from ..where.expression import RowFilter, expression_of
from .columns import (
    choose_columns,
    common_type,
    id_type,
    is_whole_decimal,
    listed,
    refuse_columns,
    refuse_folder_columns,
    refuse_reserved,
    refuse_two_sets,
    refuse_weight,
    value_type,
)
from .finding import find_input
from .formats.form import Form, RowLayout
from .formats.input_format import is_text
from .formats.parquet import Footer, no_parquet
from .formats.statistics import column_bytes, column_range, mean_text_bytes
from .head import Head, read_heads
from .opening import error_reason
from .partitions import PrunedFiles, prune_files, texts_of_path
from .sources import FOOTER_READERS, Source, SourceFile, text_ids_note

_STATISTICS_BYTES = 2**20
"""Statistics of larger footers are not read: 1 MiB takes 0.7 s, and a sample of the rows tells as much."""
_ID_BYTES = 16
"""Assumed bytes of an id as text, where they are not known."""
_DEFAULTS = Form()


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
    path, files_found, live = find_input(path, options, form.format, table_version)
    _refuse_form(form, files_found.format, path, is_table=live is not None)
    pruned = prune_files(files_found, condition, live)
    with (
        nullcontext() if live is None else live.all_there(),
        ThreadPoolExecutor(min(FOOTER_READERS, len(pruned.paths))) as readers,
    ):
        heads = read_heads(readers, pruned.paths, files_found.format, form, options)
    names = heads[0].names if live is None else list(live.columns)
    folders = () if live is not None else tuple(texts_of_path(files_found.root, files_found.paths[0]))
    source_column, target_column, notes = choose_columns(
        pruned.paths[0], names, source_column, target_column, folders, form.bipartite is not None
    )
    if form.two_sided and source_column > target_column:  # vertices of one side come before those of the other
        source_column, target_column = target_column, source_column
    ends = source_column, target_column
    refuse_two_sets(path, ends, form.bipartite is not None)
    refuse_reserved(path, ends, reserved)
    weight = () if form.weights is None else (form.weights.column,)
    refuse_folder_columns(path, files_found.paths[0], names, folders, (*ends, *weight))
    ids: dict[str, pa.DataType] = {}
    if is_text(files_found.format):
        ids = dict.fromkeys(
            ends, _input_type(heads, _end_types(heads, ends, files_found.format, form), files_found.format, form)
        )
    where = None if condition is None else _filter_of(condition, heads, pruned, ids)
    if live is not None:
        refuse_columns(live, heads, (*ends, *weight, *(where.columns if where is not None else ())))
    types = _end_types(heads, ends, files_found.format, form)
    if form.bipartite == "prefix" and not is_text(files_found.format):
        for end in ends:  # each column has a type of its own
            _input_type(heads, [{end: of_file[end]} for of_file in types], files_found.format, form)
        common: pa.DataType = pa.string()
    else:
        common = _input_type(heads, types, files_found.format, form)
    if form.weights is not None:
        _refuse_weights(heads, ends, form.weights.column)
    prefixes = _id_prefixes(ends) if form.bipartite == "prefix" else None
    ids_are_text = prefixes is not None or not pa.types.is_integer(common)
    id_bytes = [_id_bytes(heads, head, ends, prefixes) if ids_are_text else () for head in heads]
    return Source(
        path,
        _source_files(files_found.format, heads, id_bytes, pruned.constants),
        source_column,
        target_column,
        common if prefixes is None else pa.string(),
        options,
        id_range=None if ids_are_text else _id_range(heads, types),
        most_id_bytes=_most_id_bytes(heads, set(ends), prefixes) if ids_are_text else None,
        table=None if live is None else live.table,
        format=files_found.format,
        layout=_row_layout(files_found.format, heads, ends, common, where, weight, form),
        where=where,
        files_left_out=pruned.left_out,
        bipartite=form.bipartite,
        two_sided=form.two_sided,
        directed=form.directed,
        weights=form.weights,
        prefixes=prefixes,
        notes=(*_guess_notes(heads, ends, form), *notes),
    )


def _source_files(
    format: str, heads: Sequence[Head], id_bytes: Sequence[tuple[int, ...]], constants: Sequence[Mapping[str, Any]]
) -> tuple[SourceFile, ...]:
    """The files to read; all arguments but the format are [files]."""
    return tuple(
        SourceFile(
            head.path,
            head.bytes,
            head.row_groups,
            head.version,
            id_bytes_of_file,
            head.spans,
            head.names if is_text(format) else (),
            constants_of_file,
            head.matrix,
            "\n" if head.text is None else head.text.line_end,
        )
        for head, id_bytes_of_file, constants_of_file in zip(heads, id_bytes, constants, strict=True)
    )


def _id_prefixes(ends: tuple[str, str]) -> tuple[str, str]:
    """A prefix for the ids of each column, so that no id of one column equals an id of the other. Raises UsageError."""
    first, second = (f"{column}:" for column in ends)
    if first.startswith(second) or second.startswith(first):
        raise UsageError(
            f"each id gets the name of its column, and ids of {ends[0]!r} and {ends[1]!r} could still be equal: rename "
            "one column"
        )
    return first, second


def _row_layout(
    format: str,
    heads: Sequence[Head],
    ends: tuple[str, str],
    id_type: pa.DataType,
    where: RowFilter | None,
    weight: Sequence[str] = (),
    form: Form = _DEFAULTS,
) -> RowLayout | None:
    """The layout of the rows, with the types of the columns that a run reads; None for Parquet. `weight` names the
    column of weights, if any, and `form` is what the settings say.
    """
    if format == "parquet":
        return None
    text = heads[0].text
    if text is None:
        return RowLayout(format)
    types = dict.fromkeys(ends, id_type)
    for name, kind in where.types if where is not None else ():
        if where is not None and name in where.columns:
            types.setdefault(name, kind)
    types.update(dict.fromkeys(weight, pa.float64()))
    return RowLayout(
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
    if form.id_type != "auto" or not any(values.is_like_integers for *_, values in written):
        return []
    for path, column, values in written:
        if values.other is not None:
            return [text_ids_note(f"{path}: line {values.line:,}", values.other, column)]
    return []


def _guess_notes(heads: Sequence[Head], ends: tuple[str, str], form: Form) -> tuple[str, ...]:
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
    if form.bipartite != "prefix":  # which makes all ids text
        notes += _text_ids_notes(heads, ends, form)
    return tuple(notes)


def _id_range(heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]]) -> tuple[int, int] | None:
    """The smallest and the largest id, by the statistics of all row groups; None if one lacks statistics."""
    footers = [head.footer for head in heads]
    if None in footers or not _are_small(heads):
        return None
    ranges = []
    for footer, columns in zip(footers, types, strict=True):
        if footer is None or not sum(footer.row_groups):
            continue
        try:
            id_limits = column_range(footer.content, columns)
        except ValueError as error:
            raise no_parquet(footer.path, error) from error
        if id_limits is None:
            return None
        ranges.append(id_limits)
    return (min(least for least, _ in ranges), max(most for _, most in ranges)) if ranges else None


def _decimal_range(head: Head, column: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a column of decimals without a fraction, by the statistics of all row
    groups; None without such statistics.
    """
    if head.footer is None or not _are_small([head]):
        return None
    try:
        return column_range(head.footer.content, {column: head.types[column]})
    except ValueError as error:
        raise no_parquet(head.path, error) from error


def _id_bytes(
    heads: Sequence[Head], head: Head, columns: Collection[str], prefixes: tuple[str, str] | None
) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of both columns as text, from the footer or estimated."""
    if prefixes is not None:
        row = sum(len(prefix) + _ID_BYTES for prefix in prefixes)
        return tuple(rows * row for rows in head.row_groups)
    if head.footer is not None:
        return _text_bytes(head.footer, columns, _are_small(heads))
    row = round(head.text.row_bytes) if head.text is not None else 2 * _ID_BYTES
    return tuple(rows * row for rows in head.row_groups)


def _most_id_bytes(heads: Sequence[Head], columns: Collection[str], prefixes: tuple[str, str] | None) -> float | None:
    """The mean bytes of a text in the row group where it is largest, or more; None if the footers do not tell."""
    if prefixes is not None or not _are_small(heads):
        return None
    most = 0.0
    for head in heads:
        if head.footer is None:
            return None
        try:
            means = mean_text_bytes(head.footer.content, columns) if sum(head.row_groups) else []
        except ValueError as error:
            raise no_parquet(head.path, error) from error
        if means is None:
            return None
        most = max([most, *means])
    return most


def _text_bytes(footer: Footer, columns: Collection[str], small: bool) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of `columns`; of all columns unless the footers are `small`."""
    try:
        if small:
            return column_bytes(footer.content, columns)
        return tuple(max(0, size) for size in footer.group_bytes)
    except ValueError as error:
        raise no_parquet(footer.path, error) from error


def _are_small(heads: Sequence[Head]) -> bool:
    """Whether the footers are small enough to read the statistics of each column."""
    return sum(len(head.footer.content) for head in heads if head.footer is not None) <= _STATISTICS_BYTES


_ID_TYPES = {"int64": pa.int64(), "uint64": pa.uint64(), "string": pa.string()}


def _refuse_form(form: Form, format: str, path: str, is_table: bool) -> None:
    """Raises UsageError for settings of another format."""
    if is_table and form.format not in ("auto", "parquet"):
        raise UsageError(f"input.format is {form.format}, but input {path!r} is a table, whose files are Parquet")
    of_csv = {
        "input.header": form.header is not None,
        "input.delimiter": form.delimiter is not None,
        "input.comment": form.comment is not None,
        "input.strip": form.strip,
    }
    for name, is_set in of_csv.items():
        if is_set and format not in ("csv", "tsv"):
            raise UsageError(f"{name} is for CSV and TSV, and input {path!r} is {format}: leave it out")
    if form.id_type != "auto" and not is_text(format):
        raise UsageError(
            f"input.id_type is for CSV, TSV and JSON lines, and input {path!r} is {format}, whose columns have types: "
            "leave it out"
        )


def _end_types(heads: Sequence[Head], ends: tuple[str, str], format: str, form: Form) -> list[dict[str, pa.DataType]]:
    """[files] types of both id columns. Raises InputError if one is missing or has an unusable type."""
    types = [{column: _end_type(head, column, format, form) for column in ends} for head in heads]
    if all(head.is_empty for head in heads):
        with suppress(InputError):  # without ids their type is that of the first file, if it is one of ids
            of_first = {column: id_type(heads[0].path, heads[0].names, heads[0].types, column) for column in ends}
            common_type([(heads[0].path, *one) for one in of_first.items() if not pa.types.is_null(one[1])])
            types[0] = of_first
    return types


def _end_type(head: Head, column: str, format: str, form: Form) -> pa.DataType:
    types = _types(head)
    if is_text(format) and column in types:
        written = None if head.text is None else head.text.written.get(column)
        if form.id_type != "auto":
            types = {**types, column: _ID_TYPES[form.id_type]}
        elif written is None:  # JSON, whose values have types
            if not any(test(types[column]) for test in (pa.types.is_null, pa.types.is_integer, pa.types.is_floating)):
                types = {**types, column: pa.string()}
        elif written.other is not None:
            types = {**types, column: pa.string()}
    end_type = id_type(head.path, head.names, types, column)
    if column in types and is_whole_decimal(value_type(types[column])):
        least, most = _decimal_range(head, column) or (0, 0)
        return pa.uint64() if least >= 0 and most >= 2**63 else pa.int64()
    return end_type


def _types(head: Head) -> Mapping[str, pa.DataType]:
    """The types of the columns of a file; of one without rows null, since they say nothing about its values."""
    return dict.fromkeys(head.types, pa.null()) if head.is_empty else head.types


def _input_type(
    heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]], format: str, form: Form
) -> pa.DataType:
    """The common type of the ids of all files; `types` are [files] the types of both columns. Ids of CSV are text if
    some of them are not integers.

    Raises InputError if there is no common type.
    """
    if form.id_type != "auto":
        return _ID_TYPES[form.id_type]
    used = [
        (head.path, column, kind)
        for head, of_file in zip(heads, types, strict=True)
        for column, kind in of_file.items()
        if not pa.types.is_null(kind)
    ]
    kinds = {kind for *_, kind in used}
    if format in ("csv", "tsv") and pa.string() in kinds:
        return pa.string()
    if is_text(format):
        _refuse_other_types(heads, types)
    if is_text(format) and kinds == {pa.int64(), pa.uint64()}:
        return pa.uint64()
    return common_type(used)


def _refuse_other_types(heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]]) -> None:
    """Raises InputError if one file of JSON lines has integers in its first rows and another one text."""
    first: tuple[str, str, bool] | None = None
    for head, of_file in zip(heads, types, strict=True):
        for column, kind in of_file.items():
            if pa.types.is_null(kind):
                continue
            is_integer = pa.types.is_integer(kind)
            if first is None:
                first = head.path, column, is_integer
            elif first[2] != is_integer:
                names = {True: "whole numbers", False: "text"}
                raise InputError(
                    f"{head.path}: column {column!r} has {names[is_integer]} in its first rows, and column "
                    f"{first[1]!r} of {first[0]} has {names[first[2]]}: write all ids as integers, or all as text in "
                    "quotes"
                )


def _refuse_weights(heads: Sequence[Head], ends: tuple[str, str], column: str) -> None:
    """Raises InputError unless each file has the column of weights, and numbers in it."""
    if column in ends:
        raise InputError(f"input.weight_column is {column!r}, which has the ids of an end of each edge: name another")
    for head in heads:
        refuse_weight(head.path, head.names, _types(head), column)


def _filter_of(
    condition: Condition, heads: Sequence[Head], files: PrunedFiles, ids: Mapping[str, pa.DataType]
) -> RowFilter:
    """The condition with the types of its columns; `ids` are those of the columns of ids in text files.

    Raises UsageError if these do not fit, InputError for a file that lacks a column or has it with another type.
    """
    types: dict[str, pa.DataType] = {}
    columns = []
    first = heads[0]
    for column in condition.columns:
        if column.name in files.types:
            types[column.name] = files.types[column.name]
            continue
        if column.name not in first.types:
            known = listed([*first.names, *files.types, *files.others])
            hint = "; text needs single quotes" if condition.text[column.at] == '"' else ""
            raise refused(condition.text, column.at, f"the input has no column {column.name!r}; it has {known}{hint}")
        columns.append(column.name)
        types[column.name] = ids[column.name] if column.name in ids else _type_of(column.name, heads)
    for constants in files.constants[:1]:
        expression = expression_of(condition, types, constants)
        try:
            pa.schema(list(types.items())).empty_table().filter(expression)
        except pa.ArrowException as error:
            raise UsageError(
                f"input.where: Arrow cannot evaluate {clipped(condition.text)}: {error_reason(error)}; cast the column"
            ) from error
    return RowFilter(condition, tuple(types.items()), tuple(columns))


def _type_of(column: str, heads: Sequence[Head]) -> pa.DataType:
    earlier: tuple[str, pa.DataType] | None = None
    for head in heads:
        if column not in head.types:
            raise InputError(
                f"{head.path} has no column {column!r}, which input.where uses; it has {listed(head.names)}"
            )
        if (count := head.names.count(column)) > 1:
            raise InputError(
                f"{head.path} has {count} columns named {column!r}, which input.where uses: rename all but one"
            )
        kind = _plain(_types(head)[column])
        if pa.types.is_null(kind):
            continue
        if earlier is not None and earlier[1] != kind:
            raise InputError(
                f"{head.path}: column {column!r}, which input.where uses, is {kind}, and in {earlier[0]} it is "
                f"{earlier[1]}: cast it"
            )
        earlier = head.path, kind
    return earlier[1] if earlier is not None else pa.string()


def _plain(kind: pa.DataType) -> pa.DataType:
    kind = value_type(kind)
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
