"""The comparison with the night before: edges and DN-graphs that appeared, vanished, rose and fell since then."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any

import pyarrow as pa

from ..compare.diff import Diff, LargestChanges, RowChanges, compare
from ..compare.vertices import ColumnChanges, VertexChanges
from ..events import Events
from ..messages.exits import message
from ..queries.program_columns import value_text
from ..results.result import Result
from ..results.series import PreviousResult
from .parts import Section, Table, clipped, number, share

MOST_EDGES = 5
"""Edges of each kind of change."""
MOST_DN_GRAPHS = 15
_KINDS = ("appeared", "vanished", "rose", "fell", "changed", "reshaped")
_COUNTS = {"old": "before", "new": "now", "unchanged": "unchanged"} | {kind: kind for kind in _KINDS}
"""Counts of a comparison, each with its name on the page."""


@dataclass(frozen=True)
class SinceLastNight:
    """The comparison of a result with the one of the night before."""

    earlier: PreviousResult | None
    """None if the search for it failed."""
    diff: Diff | None
    """None if the comparison failed."""
    largest: LargestChanges
    failed: str = ""
    """Why the comparison failed."""


def compare_nights(
    result: Result, before: Callable[[], PreviousResult | None], events: Events
) -> SinceLastNight | None:
    """Compare a result with the one that `before` finds; None if there is no earlier one.

    An error does not fail the run: it is in the answer, and becomes the event `comparison_failed`.
    """
    start, largest, earlier = time.perf_counter(), LargestChanges(MOST_EDGES, MOST_DN_GRAPHS), None
    try:
        earlier = before()
        if earlier is None:
            return None
        with events.stage("compare", 0):
            diff = compare(Result(earlier.place), result, largest)
    except Exception as error:
        reason = message(error).replace(str(result.place), "this one")  # an unpublished result has a temporary path
        events.emit("comparison_failed", before=str(earlier.place) if earlier else None, reason=reason)
        return SinceLastNight(earlier, None, largest, reason)
    counts = {
        name: part for name, part in diff.as_dict().items() if name in ("edges", "dn_graphs", "groups", "vertices")
    }
    events.emit("compared", before=str(earlier.place), seconds=round(time.perf_counter() - start, 3), **counts)
    return SinceLastNight(earlier, diff, largest)


def changes(since: SinceLastNight) -> Section:
    """The section: counts of changes, and the rows that changed most."""
    title, night = "Since the night before", "the night before"
    if since.earlier is not None:
        title, night = f"Since {since.earlier.day}", f"{clipped(since.earlier.place)}, the night before"
    compared = since.diff
    if compared is None:
        text = [f"There is no comparison with {night}: {clipped(since.failed)}."]
        return Section("changes", title, text, [], [])
    text = [f"Compared with {night}.", *(f"{clipped(notice)}." for notice in compared.notices)]
    for name, side in _sides(compared).items():
        if name != "dense groups":
            text.append(f"{share(side.unchanged, side.new) or 'None'} of the {name} are unchanged.")
    tables = [*_count_tables(compared), *_largest_tables(compared, since.largest)]
    return Section("changes", title, text, [], tables, beside=len(tables))


def _sides(compared: Diff) -> dict[str, RowChanges | VertexChanges]:
    """What was compared, by name."""
    given = {"dense groups": compared.dn_graphs, "edges": compared.edges, "vertices": compared.vertices}
    return {name: side for name, side in given.items() if side is not None}


def _count_tables(compared: Diff) -> list[Table]:
    """The counts of changes, and of fates of dense groups and of groups of programs."""
    sides = _sides(compared)
    rows = [(title, *(_count(side, name) for side in sides.values())) for name, title in _COUNTS.items()]
    tables = [Table("What changed", ("", *(f"{name}>" for name in sides)), [row for row in rows if any(row[1:])])]
    fates = {} if compared.groups is None else {"Dense groups": compared.groups}
    for title, counts in (fates | {f"Groups of {name}": own for name, own in compared.program_groups.items()}).items():
        rows = [(name, number(count)) for name, count in asdict(counts).items()]
        tables.append(Table(f"{title} by fate", ("", f"{title[0].lower()}{title[1:]}>"), rows))
    return tables


def _largest_tables(compared: Diff, largest: LargestChanges) -> list[Table]:
    """The rows that changed most."""
    tables = []
    if compared.dn_graphs is not None and largest.dn_graphs is not None and len(largest.dn_graphs):
        note = _note(compared.dn_graphs, len(largest.dn_graphs), "dn_graphs.parquet")
        tables.append(_dn_graphs(largest.dn_graphs, note))
    if compared.edges is not None and largest.edges is not None:
        tables.append(_edges(largest.edges, _note(compared.edges, len(largest.edges), "edges.parquet")))
    return tables if compared.vertices is None else [*tables, *_columns(compared.vertices)]


def _dn_graphs(rows: pa.Table, note: str) -> Table:
    names = "λ before>", "λ now>", "vertices before>", "vertices now>", "in both>", "id before>", "id now>"
    return Table(
        "Dense groups that changed, the highest λ first",
        ("track>", "change", "fate", *names),
        [
            (
                _track(row),
                row["change"],
                _fate(row),
                *_both(row, "lambda"),
                *_both(row, "vertices"),
                number(row["vertices_common"]),
                *("" if row[id] is None else str(row[id]) for id in ("id_old", "id_new")),
            )
            for row in rows.to_pylist()
        ],
        note,
    )


def _edges(rows: pa.Table, note: str) -> Table:
    ends = rows.column_names[:2]
    return Table(
        "Edges whose λ changed most, for each kind of change",
        (*map(clipped, ends), "change", "λ before>", "λ now>"),
        [
            (clipped(row[ends[0]]), clipped(row[ends[1]]), row["change"], *_both(row, "lambda"))
            for row in rows.to_pylist()
        ],
        note,
    )


def _columns(found: VertexChanges) -> list[Table]:
    """How often each column of programs changed, and the largest changes."""
    names = ("changed", "rose", "fell", "gained", "lost")
    rows = [(clipped(column.name), *(_count(column, name) for name in names)) for column in found.columns]
    note = f"Floats that differ by at most {found.tolerance:g} of the larger one are unchanged."
    values = [
        (clipped(column.name), clipped(value.id), *(clipped(value_text(end)) for end in (value.old, value.new)))
        for column in found.columns
        for value in column.largest
    ]
    tables = [Table("Columns of programs, by vertices", ("column", *(f"{name}>" for name in names)), rows, note)]
    header = ("column", "vertex", "before>", "now>")
    return [*tables, *([Table("The largest changes of each column", header, values)] if values else [])]


def _count(side: RowChanges | VertexChanges | ColumnChanges, name: str) -> str:
    count = getattr(side, name, None)
    return "" if count is None else number(count)


def _track(row: Mapping[str, Any]) -> str:
    """The track of a group, from the result that has the group; a group that continued has one track in both."""
    track = row["track_old"] if row["track_new"] is None else row["track_new"]
    return "" if track is None else str(track)


def _fate(row: Mapping[str, Any]) -> str:
    """The fate of a group, with the id of the group that it merged into or was split from."""
    if row["merged_into"] is not None:
        return f"merged into {row['merged_into']}"
    return row["fate"] if row["split_from"] is None else f"split from {row['split_from']}"


def _both(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    old, new = (row[f"{name}_{end}"] for end in ("old", "new"))
    return "" if old is None else number(old), "" if new is None else number(new)


def _note(row: RowChanges, shown: int, file: str) -> str:
    more = sum(getattr(row, kind, None) or 0 for kind in _KINDS) - shown
    return f"{number(more)} more: edgemill diff OLD NEW --output FOLDER writes {file}." if more else ""
