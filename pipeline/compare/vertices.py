"""Vertices whose columns of vertex programs differ between two results, found block by block in both sorted tables."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ...tasks.errors import UsageError
from ...tasks.ids.display import display_id
from ..output.manifest import ProgramRecord
from ..queries.attributes import json_row
from ..queries.program_columns import holds_ids
from ..results.result import Result
from .edges import aligned_blocks, join_blocks, sorted_batches

TOLERANCE = 1e-9
"""Floats are unchanged if they differ by at most this share of the larger one."""
MOST_VALUES = 5
"""Largest changes of a column that are kept."""
CHANGES = ("appeared", "vanished", "changed")
_ENDS = ("old", "new")

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class ChangedValue:
    """The value of a vertex in both results."""

    id: int | str
    """A UUID is text."""
    old: Any
    new: Any


@dataclass(frozen=True)
class ColumnChanges:
    """How often a column changed, over the vertices of both results. Null and NaN are no value."""

    name: str
    changed: int
    """Vertices with another value, with a value in place of none, or with none in place of a value."""
    rose: int | None
    """Vertices with a larger number in the new result; None for a column of ids, text or truth values."""
    fell: int | None
    gained: int
    """Vertices without a value in the old result that have one in the new result."""
    lost: int
    largest: tuple[ChangedValue, ...]
    """Numbers: the largest absolute differences, largest first. Otherwise the first changed vertices, by their ids."""


@dataclass(frozen=True)
class VertexChanges:
    """Counts of vertices, and the changes of each column that both results have."""

    old: int
    new: int
    unchanged: int
    """Vertices of both results whose columns are all equal."""
    appeared: int
    vanished: int
    changed: int
    tolerance: float
    """Floats that differ by at most this share of the larger one count as equal."""
    columns: tuple[ColumnChanges, ...]

    def as_dict(self) -> dict[str, Any]:
        """JSON values."""
        columns = [
            asdict(column) | {"largest": [json_row(asdict(value)) for value in column.largest]}
            for column in self.columns
        ]
        return asdict(self) | {"columns": columns}


def shared_columns(old: Result, new: Result) -> tuple[list[str], list[str]]:
    """The columns that are compared: `degree` and those of programs that both results have with one type; none if they
    share none. Then sentences on what is not compared, or is compared although it was made in another way.
    """
    columns: list[str] = []
    notices: list[str] = []
    owner = [{name: record for record in side.manifest.programs for name in record.columns} for side in (old, new)]
    for side, own, other in zip((old, new), owner, owner[::-1], strict=True):
        if only := dict.fromkeys(record.name for name, record in own.items() if name not in other):
            notices.append(f"only {side.place} has columns of {', '.join(only)}: they are not compared")
    of_edges = {name: None for side in (old, new) for one in side.manifest.programs for name in one.edge_columns}
    if of_edges:
        notices.append(f"columns of edges are not compared: {', '.join(of_edges)}")
    told: set[str] = set()
    for name, before in owner[0].items():
        if name not in owner[1]:
            continue
        after = owner[1][name]
        kinds = [side.vertices.schema.field(name).type for side in (old, new)]
        if kinds[0] != kinds[1]:
            notices.append(f"{name} is {kinds[0]} in {old.place} and {kinds[1]} in {new.place}: not compared")
            continue
        columns.append(name)
        if before.name in told:
            continue
        told.add(before.name)
        notices += _made_in_another_way(old, new, before, after)
    return ["degree", *columns] if columns else [], notices


def _made_in_another_way(old: Result, new: Result, before: ProgramRecord, after: ProgramRecord) -> Iterator[str]:
    """Sentences on how a program differs between two results."""
    if before.parameters != after.parameters:
        yield f"program {before.name} had other settings: {_unlike(before.parameters, after.parameters)}"
    if before.sha256 != after.sha256:
        yield f"program {before.name} had another source, {after.source or before.source}"
    for side, record in ((old, before), (new, after)):
        if not record.converged:
            yield f"a limit ended program {before.name} of {side.place} before it had converged"


class VertexComparison:
    """Compares vertices by id, in the columns `columns` that both results have; counts, and keeps the largest changes.

    Each table is read once, in blocks. Raises UsageError for a tolerance that is not a finite number of at least 0.
    """

    def __init__(self, old: Result, new: Result, columns: Sequence[str], tolerance: float) -> None:
        if not (isfinite(tolerance) and tolerance >= 0):
            raise UsageError(f"tolerance must be a number of at least 0, got {tolerance}")
        self._sides, self._tolerance = (old, new), tolerance
        kinds = {name: new.vertices.schema.field(name).type for name in columns}
        of_ids = {name for record in new.manifest.programs for name in record.columns if holds_ids(record, name)}
        self._columns = {name: _Column(name, kinds[name], name in of_ids, tolerance) for name in columns}
        self._count = dict.fromkeys(CHANGES, 0)
        fields = [new.vertices.schema.field("id"), pa.field("change", pa.string())]
        for name in columns:
            fields += [pa.field(f"{name}_{end}", kinds[name]) for end in _ENDS]
        self.schema = pa.schema(fields)
        """id; change, one of CHANGES; and each column of both results, null where a result lacks the vertex."""

    def changed(self) -> Iterator[pa.Table]:
        """The vertices that appeared, vanished or changed in a column, with the columns of `schema`, ascending by id.

        Raises InputError for damage.
        """
        names = ["id", *self._columns]
        before, after = (sorted_batches(side.vertices, names) for side in self._sides)
        for blocks in aligned_blocks(before, after, keys=1):
            if blocks[0] is not None and blocks[1] is not None and blocks[0].equals(blocks[1]):
                continue
            rows = join_blocks(*blocks, ["id"]).sort_by("id")
            here = [_valid(rows[f"degree_{end}"]) for end in _ENDS]  # degrees are never null
            both = here[0] & here[1]
            changed = np.zeros(len(rows), np.bool_)
            for column in self._columns.values():
                changed |= column.count(rows, both)
            change = np.where(both, np.where(changed, "changed", ""), np.where(here[1], "appeared", "vanished"))
            for name in CHANGES:
                self._count[name] += int((change == name).sum())
            rows = rows.append_column("change", pa.array(change, pa.string()))
            rows = rows.filter(pa.array(change != "")).select(self.schema.names)
            if len(rows):
                yield rows.cast(self.schema)

    def found(self) -> VertexChanges:
        """The counts, after all tables of `changed` were taken."""
        old, new = (side.manifest.counts.vertices for side in self._sides)
        unchanged = old - self._count["vanished"] - self._count["changed"]
        columns = tuple(column.found() for column in self._columns.values())
        return VertexChanges(old, new, unchanged, **self._count, tolerance=self._tolerance, columns=columns)


class _Column:
    """The changes of one column."""

    def __init__(self, name: str, kind: pa.DataType, ids: bool, tolerance: float) -> None:
        self._name, self._tolerance = name, tolerance
        self._floats = bool(pa.types.is_floating(kind))
        self._numbers = self._floats or (bool(pa.types.is_integer(kind)) and not ids)
        self._counts = dict.fromkeys(("changed", "rose", "fell", "gained", "lost"), 0)
        self._largest: list[tuple[float, ChangedValue]] = []

    def count(self, rows: pa.Table, both: Bools) -> Bools:
        """Count the changes in a block of rows, ascending by id; returns which rows changed."""
        old, new = (rows[f"{self._name}_{end}"] for end in _ENDS)
        known = [_valid(values) & both for values in (old, new)]
        gained, lost = known[1] & ~known[0], known[0] & ~known[1]
        unlike = np.zeros(len(rows), np.bool_)
        at = np.flatnonzero(known[0] & known[1])
        values = [column.take(pa.array(at)) for column in (old, new)]
        size = np.zeros(len(at))
        if self._numbers:
            before, after = (column.to_numpy() for column in values)
            unlike[at] = self._differ(before, after)
            with np.errstate(invalid="ignore"):
                size = np.abs(after.astype(np.float64) - before.astype(np.float64))
            self._counts["rose"] += int((unlike[at] & (after > before)).sum())
            self._counts["fell"] += int((unlike[at] & (after < before)).sum())
        else:
            unlike[at] = pc.not_equal(*values).to_numpy()
        changed = unlike | gained | lost
        for name, rows_of in (("changed", changed), ("gained", gained), ("lost", lost)):
            self._counts[name] += int(rows_of.sum())
        self._keep(rows["id"], at, unlike[at], size, values)
        return changed

    def found(self) -> ColumnChanges:
        """The counts so far."""
        counts: dict[str, Any] = dict(self._counts)
        if not self._numbers:
            counts["rose"] = counts["fell"] = None
        return ColumnChanges(self._name, **counts, largest=tuple(value for _, value in self._largest))

    def _differ(self, old: NDArray[Any], new: NDArray[Any]) -> Bools:
        differ: Bools = old != new
        if self._floats:
            finite = np.isfinite(old) & np.isfinite(new)
            with np.errstate(invalid="ignore", over="ignore"):
                close = np.abs(new - old) <= self._tolerance * np.maximum(np.abs(old), np.abs(new))
            differ &= ~(finite & close)
        return differ

    def _keep(self, ids: pa.ChunkedArray, at: Any, unlike: Bools, size: Any, values: Sequence[pa.ChunkedArray]) -> None:
        """Keep the largest changes; of equal ones those that come first."""
        places = np.flatnonzero(unlike)
        places = places[np.argsort(-size[places], kind="stable")[:MOST_VALUES]]
        ends = [column.take(pa.array(places)).to_pylist() for column in values]
        found = zip(ids.take(pa.array(at[places])).to_pylist(), *ends, strict=True)
        rows = [ChangedValue(display_id(id), display_id(old), display_id(new)) for id, old, new in found]
        self._largest += zip(size[places].tolist(), rows, strict=True)
        self._largest.sort(key=lambda own: -own[0])
        del self._largest[MOST_VALUES:]


def _valid(values: pa.ChunkedArray) -> Bools:
    """Which values are neither null nor NaN."""
    valid: Bools = pc.invert(pc.is_null(values, nan_is_null=True)).to_numpy()
    return valid


def _unlike(old: Mapping[str, Any], new: Mapping[str, Any]) -> str:
    names = [name for name in {**old, **new} if old.get(name) != new.get(name)]
    return ", ".join(f"{name} {_short(old.get(name))}, then {_short(new.get(name))}" for name in names)


def _short(value: Any) -> str:
    text = "none" if value is None else str(value)
    return text if len(text) <= 60 else f"{text[:60]}…"
