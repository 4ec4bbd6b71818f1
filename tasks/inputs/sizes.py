"""What heads tell of the ids before they are read: their range, and the bytes that they take as text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

import pyarrow as pa

from ..statistics import column_bytes, column_range
from .head import Head
from .parquet import Footer, no_parquet

__all__ = ["id_bytes", "id_range"]

_STATISTICS_BYTES = 2**20
"""Of footers whose statistics are read, which takes 0.7 s; of larger ones a sample of the rows tells as much."""
_ID_BYTES = 16
"""Of an id as text, where nothing tells."""


def id_range(heads: Sequence[Head], types: Sequence[Mapping[str, pa.DataType]]) -> tuple[int, int] | None:
    """The smallest and the largest id by the statistics of all row groups, or None where one does not tell."""
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


def id_bytes(
    heads: Sequence[Head], head: Head, columns: Collection[str], prefixes: tuple[str, str] | None
) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of both columns as text."""
    if prefixes is not None:
        row = sum(len(prefix) + _ID_BYTES for prefix in prefixes)
        return tuple(rows * row for rows in head.row_groups)
    if head.footer is not None:
        return _text_bytes(head.footer, columns, _are_small(heads))
    row = round(head.text.row_bytes) if head.text is not None else 2 * _ID_BYTES
    return tuple(rows * row for rows in head.row_groups)


def _text_bytes(footer: Footer, columns: Collection[str], small: bool) -> tuple[int, ...]:
    """[row groups] uncompressed bytes of the columns; of all columns where footers are not `small`."""
    try:
        if small:
            return column_bytes(footer.content, columns)
        return tuple(max(0, size) for size in footer.group_bytes)
    except ValueError as error:
        raise no_parquet(footer.path, error) from error


def _are_small(heads: Sequence[Head]) -> bool:
    """Whether what footers say of each column is worth the time of reading it."""
    return sum(len(head.footer.content) for head in heads if head.footer is not None) <= _STATISTICS_BYTES
