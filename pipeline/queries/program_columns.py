"""What the columns of vertex programs say: the distribution of values with the top vertices, or the largest groups.

A column of ids, such as components, groups the vertices that have the same id. All other columns hold values.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.errors import UsageError
from ..output.manifest import ProgramRecord
from ..results.result import Result
from ..results.streaming import stream
from ..results.table import ResultTable
from .attributes import as_text

MOST_RANGES = 12
"""Ranges of a distribution, at most."""
EVEN_BELOW = 1000
"""If the largest positive value is below so many times the smallest, ranges have equal widths, else equal ratios."""
PENDING_ROWS = 1 << 16
"""Rows that are collected before they are sorted."""


@dataclass(frozen=True)
class Range:
    """Vertices with a value in a range."""

    first: float
    last: float
    """The last whole number of the range, or the first value of the next range; the largest value of all in the last.
    """
    vertices: int


@dataclass(frozen=True)
class ColumnSummary:
    """A column of a program."""

    program: str
    name: str
    meaning: str
    """Empty if the manifest does not say it."""
    groups: int | None
    """Distinct ids, for a column of ids; None for values."""
    top: list[tuple[Any, Any]]
    """Vertices with the largest values, largest first; for a column of ids, the ids of most vertices and how many.
    Ties go to the smaller id.
    """
    ranges: list[Range]
    """The distribution of finite values, ascending; for a column of ids, of the numbers of vertices of groups."""
    others: int
    """Vertices, or edges, without a finite value."""
    of_edges: bool = False
    """Whether it is a column of edges. `top` has pairs of ids then, and `Range.vertices` counts edges."""

    @property
    def rows(self) -> str:
        """What has a value."""
        return "edges" if self.of_edges else "vertices"

    @property
    def constant(self) -> str:
        """A sentence if all vertices have one value, or are in one group; else empty."""
        if self.others or len(self.ranges) != 1:
            return ""
        own = self.ranges[0]
        if self.groups == 1:
            return f"{self.name} is {self.top[0][0]} for all {self.rows}"
        if self.groups is None and own.first == own.last:
            return f"{self.name} is {own.first:g} for all {self.rows}"
        return ""


def summaries(result: Result, most: int) -> list[ColumnSummary]:
    """All columns of the programs of a result, with `most` top rows each. Reads each column once or twice.

    Memory is O(most), and O(groups) for columns of ids. Raises InputError for damage.
    """
    found = []
    for record in result.manifest.programs:
        for name in record.columns:
            text = not _is_number(result.vertices.schema.field(name).type)
            describe = _of_ids if text or holds_ids(record, name) else _of_values
            found.append(describe(result, record.name, name, record.meanings.get(name, ""), most))
        for name in record.edge_columns:
            describe = _of_values if _is_number(result.edges.schema.field(name).type) else _of_ids
            found.append(describe(result, record.name, name, record.meanings.get(name, ""), most, of_edges=True))
    return found


def holds_ids(record: ProgramRecord, column: str) -> bool:
    """Whether a column of a program holds ids, of vertices or of groups."""
    return column in record.id_columns


def top_vertices(result: Result, name: str, most: int) -> pa.Table:
    """The `most` vertices with the largest values in a column of the vertices, largest first, as rows of that table.

    Ties go to the smaller id; nulls and NaN are left out. Raises UsageError for a column that has no
    numbers, and InputError for damage.
    """
    schema = result.vertices.schema
    if name not in schema.names or name == "id" or not _is_number(schema.field(name).type):
        numbers = ", ".join(field.name for field in schema if field.name != "id" and _is_number(field.type))
        raise UsageError(f"vertices are ordered by {numbers}, not by {name!r}")
    return _top(result, result.vertices, schema.names, ["id"], name, most)


def top_edges(result: Result, name: str, most: int) -> pa.Table:
    """The `most` edges with the largest values in a column, largest first: both ids and the value. Ties go to the
    smaller ids; NaN is left out. Raises InputError for damage.
    """
    ids = result.edges.schema.names[:2]
    return _top(result, result.edges, [*ids, name], ids, name, most)


def _top(
    result: Result, table: ResultTable, columns: Sequence[str], ids: Sequence[str], name: str, most: int
) -> pa.Table:
    kept = pa.schema([table.schema.field(column) for column in columns]).empty_table()
    waiting: list[pa.RecordBatch] = []
    with result.reading():
        for batch in stream(table, columns):
            waiting.append(batch)
            if sum(map(len, waiting)) >= PENDING_ROWS:
                kept, waiting = _largest(kept, waiting, ids, name, most), []
    return _largest(kept, waiting, ids, name, most)


def value_text(value: Any) -> str:
    """A value of a program: a number with few digits, or an id."""
    return f"{value:.6g}" if isinstance(value, float) else as_text(value)


def range_text(own: Range) -> str:
    """A range as text."""
    return f"{own.first:.4g}" if own.first == own.last else f"{own.first:.4g} to {own.last:.4g}"


def row_name(id: Any) -> str:
    """The vertex, group or edge of a row of `ColumnSummary.top`."""
    return " - ".join(map(as_text, id)) if isinstance(id, tuple) else as_text(id)


def facts_text(facts: Mapping[str, Any]) -> str:
    """Facts of a program on one line, without those that are long lists."""
    parts = []
    for name, fact in facts.items():
        if isinstance(fact, list):
            if len(fact) != 2 or name.startswith("hop_plot"):
                continue
            low, high = fact
            fact = low if low == high else f"{low} to {'?' if high is None else high}"
        value = f"{fact:,.6g}" if isinstance(fact, float) else str(fact)
        parts.append(f"{name.replace('_', ' ')} {value}")
    return ", ".join(parts)


def _largest(kept: pa.Table, waiting: list[pa.RecordBatch], ids: Sequence[str], name: str, most: int) -> pa.Table:
    rows = pa.concat_tables([kept, pa.Table.from_batches(waiting, kept.schema)])
    values = rows[name]
    rows = rows.filter(pc.invert(pc.is_null(values, nan_is_null=True)))
    if not len(rows):
        return rows
    order = [(name, "descending"), *((column, "ascending") for column in ids)]
    return rows.take(pc.select_k_unstable(rows, min(most, len(rows)), order))


def _of_values(
    result: Result, program: str, name: str, meaning: str, most: int, of_edges: bool = False
) -> ColumnSummary:
    table = result.edges if of_edges else result.vertices
    top = (top_edges if of_edges else top_vertices)(result, name, most)
    low, high, others = inf, -inf, 0
    for values in _batches(result, table, name):
        finite = values[np.isfinite(values)]
        others += len(values) - len(finite)
        if len(finite):
            low, high = min(low, float(finite.min())), max(high, float(finite.max()))
    missing = result.manifest.counts.edges if of_edges else result.manifest.counts.vertices
    whole = bool(pa.types.is_integer(table.schema.field(name).type))
    starts = _starts(low, high, whole)
    counts = np.zeros(len(starts), np.int64)
    for values in _batches(result, table, name):
        missing -= len(values)
        at = np.searchsorted(starts, values[np.isfinite(values)], "right") - 1
        counts += np.bincount(at, minlength=len(starts))
    ids = [top[column].to_pylist() for column in (top.column_names[:2] if of_edges else ["id"])]
    names = list(zip(*ids, strict=True)) if of_edges else ids[0]
    pairs = list(zip(names, top[name].to_pylist(), strict=True))
    ranges = _ranges(starts, counts, high, whole)
    return ColumnSummary(program, name, meaning, None, pairs, ranges, others + missing, of_edges)


def _of_ids(result: Result, program: str, name: str, meaning: str, most: int, of_edges: bool = False) -> ColumnSummary:
    sizes: Counter[Any] = Counter()
    with result.reading():
        for batch in stream(result.edges if of_edges else result.vertices, [name]):
            for entry in batch[name].drop_null().value_counts().to_pylist():
                sizes[entry["values"]] += entry["counts"]
    top = sorted(sizes.items(), key=lambda item: (-item[1], item[0]))[:most]
    counts = np.array(list(sizes.values()), np.int64)
    starts = _starts(float(counts.min()), float(counts.max()), True) if len(counts) else np.zeros(0)
    in_range = np.bincount(np.searchsorted(starts, counts, "right") - 1, minlength=len(starts)).astype(np.int64)
    ranges = _ranges(starts, in_range, float(counts.max(initial=0)), True)
    rows = result.manifest.counts.edges if of_edges else result.manifest.counts.vertices
    return ColumnSummary(program, name, meaning, len(sizes), top, ranges, rows - int(counts.sum()), of_edges)


def _batches(result: Result, table: ResultTable, name: str) -> Any:
    with result.reading():
        for batch in stream(table, [name]):
            yield batch[name].drop_null().to_numpy(zero_copy_only=False)


def _starts(low: float, high: float, whole: bool) -> NDArray[np.float64]:
    """The first value of each range."""
    if high < low:
        return np.zeros(0)
    if whole and high - low < MOST_RANGES:
        return np.arange(low, high + 1)
    if low > 0 and high / low >= EVEN_BELOW:
        starts = np.geomspace(low, high, MOST_RANGES + 1)[:-1]
    else:
        starts = np.linspace(low, high, MOST_RANGES + 1)[:-1]
    starts[0] = low
    return np.unique(np.ceil(starts) if whole else starts)


def _ranges(starts: NDArray[np.float64], counts: NDArray[np.int64], high: float, whole: bool) -> list[Range]:
    ends = [*(starts[1:] - whole).tolist(), high][: len(starts)]
    return [Range(*own) for own in zip(starts.tolist(), ends, counts.tolist(), strict=True)]


def _is_number(kind: pa.DataType) -> bool:
    return bool(pa.types.is_integer(kind) or pa.types.is_floating(kind))
