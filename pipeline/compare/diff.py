"""The changes between two results, such as those of two nights: counts, and the changed rows on request."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ...tasks.errors import InputError, UsageError
from ...tasks.storage.folders import Folder
from ...tasks.storage.parquet_checksum import checksummed_writer
from ...tasks.tracks import Fates
from ..output.new_path import new_file, new_folder
from ..results.result import Result
from ..settings.setting_names import naming_keywords
from .dn_graphs import DN_GRAPH_SCHEMA, changed_dn_graphs, fates_of_groups
from .edges import CHANGES, VALUE_COLUMNS, changed_edges, edge_schema
from .vertices import TOLERANCE, VertexChanges, VertexComparison, shared_columns

EDGES, DN_GRAPHS, VERTICES, SUMMARY = "edges.parquet", "dn_graphs.parquet", "vertices.parquet", "diff.json"

GROUP_ROWS = 1 << 20
"""Approximate number of rows of a row group."""


@dataclass(frozen=True)
class RowChanges:
    """Counts of rows. A row of both results is unchanged, rose, fell or was reshaped.

    A row of the old result only vanished. A row of the new result only appeared.
    """

    old: int
    new: int
    unchanged: int
    appeared: int
    vanished: int
    rose: int
    """Rows with a higher λ in the new result."""
    fell: int
    """Rows with a lower λ in the new result."""
    reshaped: int | None = None
    """DN-graphs of equal λ with other members or another number of edges; None for edges."""


@dataclass(frozen=True)
class Diff:
    """The changes between two results, as counts."""

    old: str
    """Folder or URL of the old result."""
    new: str
    edges: RowChanges | None
    """None if a result has no exact λ; `notices` names it."""
    dn_graphs: RowChanges | None
    """None if a result has no table of DN-graphs; `notices` names it."""
    groups: Fates | None
    """The fates of the DN-graphs by their members: born, died, merged, split. None if `dn_graphs` is."""
    vertices: VertexChanges | None
    """None if the results share no column of a program."""
    notices: tuple[str, ...]
    program_groups: dict[str, Fates] = field(default_factory=dict)
    """The fates of the listed groups of each program that both results have: communities, and innermost k-cores."""

    def as_dict(self) -> dict[str, Any]:
        """JSON values, as in diff.json."""
        vertices = None if self.vertices is None else self.vertices.as_dict()
        return asdict(self) | {"vertices": vertices, "notices": list(self.notices)}


@dataclass
class LargestChanges:
    """Collects the rows that changed most from tables that are passed through."""

    most_edges: int
    """Edges to collect of each kind of change, at most."""
    most_dn_graphs: int
    edges: pa.Table | None = None
    """The edges with the largest change of λ, with the columns of `edge_schema`. A missing edge counts as λ = 0."""
    dn_graphs: pa.Table | None = None
    """The DN-graphs of the highest λ in either result, with the columns of DN_GRAPH_SCHEMA."""

    def of_edges(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Collect changed edges, and yield the tables unchanged."""
        for table in tables:
            rows = table if self.edges is None else pa.concat_tables([self.edges, table])
            old, new = (pc.fill_null(rows[f"lambda_{end}"], 0).to_numpy() for end in ("old", "new"))
            order = np.argsort(-np.abs(new - old), kind="stable")
            kinds = (order[pc.equal(rows["change"], kind).to_numpy()[order]] for kind in CHANGES)
            self.edges = rows.take(np.concatenate([found[: self.most_edges] for found in kinds]))
            yield table

    def of_dn_graphs(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Collect changed DN-graphs, which come in order, and yield the tables unchanged."""
        for table in tables:
            if self.dn_graphs is None:
                self.dn_graphs = table.slice(0, self.most_dn_graphs)
            yield table


def compare(old: Result, new: Result, largest: LargestChanges) -> Diff:
    """Compare two results as `diff` does, and collect the largest changes in `largest`."""
    with old.reading(), new.reading():
        return _compare(_Plan(old, new, TOLERANCE), None, largest)


@naming_keywords()
def diff(
    old: Result | Folder | str | os.PathLike[str],
    new: Result | Folder | str | os.PathLike[str],
    output: Folder | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
    tolerance: float = TOLERANCE,
) -> Diff:
    """Compare two results: edges by their ids, DN-graphs and groups of programs by their members (see
    `changed_dn_graphs` and `Fates`), and the columns of vertex programs that both have, by the ids of vertices.

    Edges and DN-graphs are compared if both results have exact λ. Floats of programs are unchanged if they differ by at
    most `tolerance` times the larger absolute value.

    `output` is a new folder or fsspec URL for edges.parquet, dn_graphs.parquet and vertices.parquet, the changed rows
    of what is compared, and diff.json, the counts; `overwrite` replaces the output of an earlier comparison. Edges and
    vertices are read in blocks.

    Raises UsageError if there is nothing to compare: no exact λ in both results, and no column of a program that both
    have; if λ counts triangles in one and butterflies in the other; if the types of ids differ, or the names of the id
    columns of edges; if an id column has the name of a column of changes; for a negative tolerance; or if `output`
    exists or cannot be written. Raises InputError for damage.
    """
    before, after = (side if isinstance(side, Result) else Result(side) for side in (old, new))
    with before.reading(), after.reading():
        return _diff(_Plan(before, after, tolerance), output, overwrite)


def _diff(plan: _Plan, output: Folder | str | os.PathLike[str] | None, overwrite: bool) -> Diff:
    if output is None:
        return _compare(plan, None)
    before, after = plan.old, plan.new
    with new_folder(output, (EDGES, DN_GRAPHS, VERTICES, SUMMARY), overwrite, (before.place, after.place)) as folder:
        found = _compare(plan, folder)
        with new_file(folder / SUMMARY) as file:
            file.write(json.dumps(found.as_dict(), indent=1).encode() + b"\n")
    return found


class _Plan:
    """What is compared of two results. Raises UsageError as `diff` does."""

    def __init__(self, old: Result, new: Result, tolerance: float) -> None:
        self.old, self.new = old, new
        without = [
            f"{side.place} {'did not converge' if side.manifest.has_lambda else 'was made without λ'}"
            for side in (old, new)
            if not side.manifest.exact
        ]
        if old.manifest.measure != new.manifest.measure:
            measures = f"{old.manifest.measure} in one, {new.manifest.measure} in the other"
            raise UsageError(f"{old.place} and {new.place} cannot be compared: λ counts {measures}")
        _refuse_unlike(old, new, ("id_type",))
        columns, notices = shared_columns(old, new)
        if without and not columns:
            raise UsageError(f"{without[0]}: there is no λ to compare, and no program that both results have")
        if without and not all(side.manifest.has_lambda is False for side in (old, new)):
            notices = [f"{why}: only vertices are compared" for why in without] + notices
        self.edges = not without
        if self.edges:
            _refuse_unlike(old, new, ("source_column", "target_column"))
        self.notices = notices
        self.vertices = VertexComparison(old, new, columns, tolerance) if columns else None


def _refuse_unlike(old: Result, new: Result, attributes: tuple[str, ...]) -> None:
    for attribute in attributes:
        what = {"id_type": "type of ids"}.get(attribute, attribute.replace("_", " "))
        old_value, new_value = (getattr(result.manifest.input, attribute) for result in (old, new))
        if old_value != new_value:
            raise UsageError(
                f"{old.place} and {new.place} cannot be compared: the {what} is {old_value} in one, {new_value} in the "
                "other"
            )
        if attribute != "id_type" and new_value in VALUE_COLUMNS:
            raise UsageError(
                f"column {new_value!r} of {new.place} has a name that a comparison uses for changes: rename it in the "
                "input"
            )


def _compare(plan: _Plan, folder: Path | None, largest: LargestChanges | None = None) -> Diff:
    old, new = plan.old, plan.new
    notices = list(plan.notices)
    edges = dn_graphs = groups = vertices = None
    known = [{own.name for own in side.manifest.programs if own.group_column is not None} for side in (old, new)]
    program_groups = {name: fates_of_groups(old, new, name) for name in sorted(known[0] & known[1])}
    if plan.edges:
        notices += [
            f"{result.place} has no DN-graphs, as an earlier release made it: only edges are compared"
            for result in (old, new)
            if result.manifest.dense is None
        ]
        rows = changed_edges(old, new)
        rows = largest.of_edges(rows) if largest else rows
        counts = _tally(rows, edge_schema(new), folder and folder / EDGES)
        edges = _changes(old.manifest.counts.edges, new.manifest.counts.edges, counts, CHANGES)
    if plan.edges and old.manifest.dense is not None and new.manifest.dense is not None:
        changed, groups = changed_dn_graphs(old, new)
        rows = iter([changed])
        rows = largest.of_dn_graphs(rows) if largest else rows
        counts = _tally(rows, DN_GRAPH_SCHEMA, folder and folder / DN_GRAPHS)
        totals = old.manifest.dense.dn_graphs, new.manifest.dense.dn_graphs
        dn_graphs = _changes(*totals, counts, (*CHANGES, "reshaped"))
    if plan.vertices is not None:
        counts = _tally(plan.vertices.changed(), plan.vertices.schema, folder and folder / VERTICES)
        _refuse_damage(old.manifest.counts.vertices, new.manifest.counts.vertices, counts)
        vertices = plan.vertices.found()
    return Diff(str(old.place), str(new.place), edges, dn_graphs, groups, vertices, tuple(notices), program_groups)


def _changes(old: int, new: int, counts: Counter[str], names: tuple[str, ...]) -> RowChanges:
    unchanged = _refuse_damage(old, new, counts)
    return RowChanges(old, new, unchanged, **{name: counts[name] for name in names})


def _refuse_damage(old: int, new: int, counts: Counter[str]) -> int:
    """The number of unchanged rows. Raises InputError if both tables lead to another one."""
    unchanged = old - (counts.total() - counts["appeared"])
    if unchanged < 0 or unchanged != new - (counts.total() - counts["vanished"]):
        raise InputError(f"a result is damaged: of {old:,} and {new:,} rows, {dict(counts)} changed")
    return unchanged


def _tally(tables: Iterator[pa.Table], schema: pa.Schema, path: Path | None) -> Counter[str]:
    """Count the rows of each kind of change, and write them to a new file at `path`, if given."""
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        if path is not None:
            file = stack.enter_context(new_file(path))
            writer = stack.enter_context(checksummed_writer(file, schema, compression="zstd"))
        for table in _gathered(tables):
            for entry in table["change"].value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
            if path is not None:
                writer.write_table(table)
    return counts


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer, larger tables, each for one row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
