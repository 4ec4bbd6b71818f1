"""What changed between two results, such as those of two nights: counts, and the rows on request."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..tasks.errors import InputError, UsageError
from ..tasks.places import Place
from ..tasks.sealed import sealed_writer
from .dn_graph_changes import DN_GRAPH_SCHEMA, changed_dn_graphs
from .edge_changes import CHANGES, VALUE_COLUMNS, changed_edges, edge_schema
from .new_place import new_file, new_folder
from .nights.fates import Fates
from .result import Result

__all__ = ["Changes", "Diff", "Foremost", "compare", "diff"]

EDGES, DN_GRAPHS, SUMMARY = "edges.parquet", "dn_graphs.parquet", "diff.json"

GROUP_ROWS = 1 << 20
"""Rows of a row group, about."""


@dataclass(frozen=True)
class Changes:
    """Counts. What is in both is unchanged, rose, fell or reshaped; the rest of old vanished, of new appeared."""

    old: int
    new: int
    unchanged: int
    appeared: int
    vanished: int
    rose: int
    """Of higher λ in the new result."""
    fell: int
    """Of lower λ in the new result."""
    reshaped: int | None = None
    """DN-graphs of the same λ, with other members or another number of edges; None for edges."""


@dataclass(frozen=True)
class Diff:
    """What changed between two results, in numbers."""

    old: str
    """Where the old result is."""
    new: str
    edges: Changes
    dn_graphs: Changes | None
    """None where a result has none; `notices` says which."""
    groups: Fates | None
    """What became of the DN-graphs by their members alone: born, died, merged, split. None as `dn_graphs`."""
    notices: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        """Plain values, as in diff.json."""
        return asdict(self) | {"notices": list(self.notices)}


@dataclass
class Foremost:
    """The rows that changed most, as they go by."""

    most_edges: int
    """Of each kind of change, at most."""
    most_dn_graphs: int
    edges: pa.Table | None = None
    """Those whose λ is farthest from what it was, or from 0 where there was or is no edge; as `edge_schema` has it."""
    dn_graphs: pa.Table | None = None
    """Those of the highest λ in either result; as DN_GRAPH_SCHEMA has it."""

    def of_edges(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Look at the rows, and hand them on."""
        for table in tables:
            rows = table if self.edges is None else pa.concat_tables([self.edges, table])
            old, new = (pc.fill_null(rows[f"lambda_{end}"], 0).to_numpy() for end in ("old", "new"))
            order = np.argsort(-np.abs(new - old), kind="stable")
            kinds = (order[pc.equal(rows["change"], kind).to_numpy()[order]] for kind in CHANGES)
            self.edges = rows.take(np.concatenate([found[: self.most_edges] for found in kinds]))
            yield table

    def of_dn_graphs(self, tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
        """Look at the rows, which are in order, and hand them on."""
        for table in tables:
            if self.dn_graphs is None:
                self.dn_graphs = table.slice(0, self.most_dn_graphs)
            yield table


def compare(old: Result, new: Result, foremost: Foremost) -> Diff:
    """As `diff`, with some of the rows in `foremost`."""
    _refuse_unlike(old, new)
    return _compare(old, new, None, foremost)


def diff(
    old: Result | Place | str | os.PathLike[str],
    new: Result | Place | str | os.PathLike[str],
    output: Place | str | os.PathLike[str] | None = None,
    overwrite: bool = False,
) -> Diff:
    """Compare two results: edges by their ids, DN-graphs by their members (`changed_dn_graphs` and `Fates` say how).

    With `output`, this new folder, or that at an fsspec URL, gets edges.parquet and dn_graphs.parquet, the rows that
    changed, and diff.json, the counts; `overwrite` replaces one of an earlier comparison. Edges and vertices pass
    through memory in blocks.

    Raises UsageError if the results cannot be compared: other types of ids, other names of columns or such as the
    changes have, not converged; or if the folder is there, or cannot be made. Raises InputError for damage.
    """
    before, after = (side if isinstance(side, Result) else Result(side) for side in (old, new))
    _refuse_unlike(before, after)
    if output is None:
        return _compare(before, after, None)
    with new_folder(output, (EDGES, DN_GRAPHS, SUMMARY), overwrite, (before.place, after.place)) as folder:
        found = _compare(before, after, folder)
        with new_file(folder / SUMMARY) as file:
            file.write(json.dumps(found.as_dict(), indent=1).encode() + b"\n")
    return found


def _refuse_unlike(old: Result, new: Result) -> None:
    for result in (old, new):
        if not result.converged:
            raise UsageError(f"{result.place} did not converge: there is no λ to compare")
    for what, attribute in {
        "type of ids": "id_type",
        "source column": "source_column",
        "target column": "target_column",
    }.items():
        ours, theirs = (getattr(result.manifest.input, attribute) for result in (old, new))
        if ours != theirs:
            raise UsageError(
                f"{old.place} and {new.place} cannot be compared: the {what} is {ours} in one, {theirs} in the other"
            )
    given = new.manifest.input
    for name in (given.source_column, given.target_column):
        if name in VALUE_COLUMNS:
            raise UsageError(
                f"column {name!r} of {new.place} has a name that a comparison uses for changes: rename it in the input"
            )


def _compare(old: Result, new: Result, folder: Path | None, foremost: Foremost | None = None) -> Diff:
    notices = [
        f"{result.place} has no DN-graphs, as an earlier release made it: only edges are compared"
        for result in (old, new)
        if result.manifest.dense is None
    ]
    rows = changed_edges(old, new)
    rows = foremost.of_edges(rows) if foremost else rows
    counts = _tally(rows, edge_schema(new), folder and folder / EDGES)
    edges = _changes(old.manifest.counts.edges, new.manifest.counts.edges, counts, CHANGES)
    dn_graphs = groups = None
    if old.manifest.dense is not None and new.manifest.dense is not None:
        changed, groups = changed_dn_graphs(old, new)
        rows = iter([changed])
        rows = foremost.of_dn_graphs(rows) if foremost else rows
        counts = _tally(rows, DN_GRAPH_SCHEMA, folder and folder / DN_GRAPHS)
        totals = old.manifest.dense.dn_graphs, new.manifest.dense.dn_graphs
        dn_graphs = _changes(*totals, counts, (*CHANGES, "reshaped"))
    return Diff(str(old.place), str(new.place), edges, dn_graphs, groups, tuple(notices))


def _changes(old: int, new: int, counts: Counter[str], names: tuple[str, ...]) -> Changes:
    unchanged = old - (counts.total() - counts["appeared"])
    if unchanged < 0 or unchanged != new - (counts.total() - counts["vanished"]):
        raise InputError(f"a result is damaged: of {old:,} and {new:,} rows, {dict(counts)} changed")
    return Changes(old, new, unchanged, **{name: counts[name] for name in names})


def _tally(tables: Iterator[pa.Table], schema: pa.Schema, path: Path | None) -> Counter[str]:
    """Rows of each kind of change; the rows go to a new file where a path is given."""
    counts: Counter[str] = Counter()
    with ExitStack() as stack:
        if path is not None:
            file = stack.enter_context(new_file(path))
            writer = stack.enter_context(sealed_writer(file, schema, compression="zstd"))
        for table in _gathered(tables):
            for entry in table["change"].value_counts().to_pylist():
                counts[entry["values"]] += entry["counts"]
            if path is not None:
                writer.write_table(table)
    return counts


def _gathered(tables: Iterator[pa.Table]) -> Iterator[pa.Table]:
    """The same rows in fewer tables: each becomes a row group."""
    waiting: list[pa.Table] = []
    for table in tables:
        waiting.append(table)
        if sum(map(len, waiting)) >= GROUP_ROWS:
            yield pa.concat_tables(waiting)
            waiting = []
    if waiting:
        yield pa.concat_tables(waiting)
