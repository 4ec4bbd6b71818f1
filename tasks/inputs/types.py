"""Types of the id columns and of the columns of a condition over all files of an input, and ranges and sizes of ids."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress

import pyarrow as pa

from ..errors import InputError, UsageError
from ..where.condition import Condition, clipped, refused
from ..where.expression import RowFilter, expression_of
from .columns import common_type, id_type, is_whole_decimal, listed, refuse_weight, value_type
from .formats.form import Form
from .formats.input_format import is_text
from .formats.parquet import Footer, no_parquet
from .formats.statistics import column_bytes, column_range, mean_text_bytes
from .head import Head
from .opening import error_reason
from .partitions import PrunedFiles

_STATISTICS_BYTES = 2**20
"""Statistics of larger footers are not read: 1 MiB takes 0.7 s, and a sample of the rows tells as much."""
_ID_BYTES = 16
"""Assumed bytes of an id as text, where they are not known."""


def id_range(heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]]) -> tuple[int, int] | None:
    """The smallest and the largest id, by the statistics of all row groups; None if one lacks statistics."""
    footers = [head.footer for head in heads]
    if None in footers or not _are_small(heads):
        return None
    ranges = []
    for footer, columns in zip(footers, types, strict=True):
        if footer is None or not sum(footer.row_groups):
            continue
        try:
            found = column_range(footer.content, columns)
        except ValueError as error:
            raise no_parquet(footer.path, error) from error
        if found is None:
            return None
        ranges.append(found)
    return (min(least for least, _ in ranges), max(most for _, most in ranges)) if ranges else None


def decimal_range(head: Head, column: str) -> tuple[int, int] | None:
    """The smallest and the largest value of a column of decimals without a fraction, by the statistics of all row
    groups; None without such statistics.
    """
    if head.footer is None or not _are_small([head]):
        return None
    try:
        return column_range(head.footer.content, {column: head.types[column]})
    except ValueError as error:
        raise no_parquet(head.path, error) from error


def id_bytes(
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


def most_id_bytes(heads: Sequence[Head], columns: Collection[str], prefixes: tuple[str, str] | None) -> float | None:
    """The mean bytes of a text in the row group where it is largest, or more; None if the footers do not tell."""
    if prefixes is not None or not _are_small(heads):
        return None
    most = 0.0
    for head in heads:
        if head.footer is None:
            return None
        try:
            found = mean_text_bytes(head.footer.content, columns) if sum(head.row_groups) else []
        except ValueError as error:
            raise no_parquet(head.path, error) from error
        if found is None:
            return None
        most = max([most, *found])
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


def refuse_form(form: Form, format: str, path: str, is_table: bool) -> None:
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


def end_types(heads: Sequence[Head], ends: tuple[str, str], format: str, form: Form) -> list[dict[str, pa.DataType]]:
    """[files] types of both id columns. Raises InputError if one is missing or has an unusable type."""
    found = [{column: _end_type(head, column, format, form) for column in ends} for head in heads]
    if all(head.is_empty for head in heads):
        with suppress(InputError):  # without ids their type is that of the first file, if it is one of ids
            own = {column: id_type(heads[0].path, heads[0].names, heads[0].types, column) for column in ends}
            common_type([(heads[0].path, *one) for one in own.items() if not pa.types.is_null(one[1])])
            found[0] = own
    return found


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
    found = id_type(head.path, head.names, types, column)
    if column in types and is_whole_decimal(value_type(types[column])):
        least, most = decimal_range(head, column) or (0, 0)
        return pa.uint64() if least >= 0 and most >= 2**63 else pa.int64()
    return found


def _types(head: Head) -> Mapping[str, pa.DataType]:
    """The types of the columns of a file; of one without rows null, since they say nothing about its values."""
    return dict.fromkeys(head.types, pa.null()) if head.is_empty else head.types


def input_type(
    heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]], format: str, form: Form
) -> pa.DataType:
    """The common type of the ids of all files; `types` are [files] the types of both columns. Ids of CSV are text if
    some of them are not integers.

    Raises InputError if there is no common type.
    """
    if form.id_type != "auto":
        return _ID_TYPES[form.id_type]
    found = [
        (head.path, column, kind)
        for head, own in zip(heads, types, strict=True)
        for column, kind in own.items()
        if not pa.types.is_null(kind)
    ]
    kinds = {kind for *_, kind in found}
    if format in ("csv", "tsv") and pa.string() in kinds:
        return pa.string()
    if is_text(format):
        _refuse_other_types(heads, types)
    if is_text(format) and kinds == {pa.int64(), pa.uint64()}:
        return pa.uint64()
    return common_type(found)


def _refuse_other_types(heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]]) -> None:
    """Raises InputError if one file of JSON lines has integers in its first rows and another one text."""
    first: tuple[str, str, bool] | None = None
    for head, own in zip(heads, types, strict=True):
        for column, kind in own.items():
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


def refuse_weights(heads: Sequence[Head], ends: tuple[str, str], column: str) -> None:
    """Raises InputError unless each file has the column of weights, and numbers in it."""
    if column in ends:
        raise InputError(f"input.weight_column is {column!r}, which has the ids of an end of each edge: name another")
    for head in heads:
        refuse_weight(head.path, head.names, _types(head), column)


def filter_of(
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
    found: tuple[str, pa.DataType] | None = None
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
        if found is not None and found[1] != kind:
            raise InputError(
                f"{head.path}: column {column!r}, which input.where uses, is {kind}, and in {found[0]} it is "
                f"{found[1]}: cast it"
            )
        found = head.path, kind
    return found[1] if found is not None else pa.string()


def _plain(kind: pa.DataType) -> pa.DataType:
    kind = value_type(kind)
    return kind.storage_type if isinstance(kind, pa.BaseExtensionType) else kind
