"""Range and sizes of ids, from the heads of files."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from .formats.parquet import Footer, no_parquet
from .formats.statistics import column_bytes, column_range, mean_text_bytes
from .head import Head

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
