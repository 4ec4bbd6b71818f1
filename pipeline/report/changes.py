"""What the page says of the night before: edges and DN-graphs that came, went, rose and fell since then."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..comparing import Changes, Diff, Foremost
from ..nightly import Earlier
from .parts import Section, Table, clipped, number, share

__all__ = ["MOST_DN_GRAPHS", "MOST_EDGES", "Before", "changes"]

MOST_EDGES = 5
"""Of each kind of change."""
MOST_DN_GRAPHS = 15
_KINDS = ("appeared", "vanished", "rose", "fell", "reshaped")
_COUNTS = {"old": "before", "new": "now", "unchanged": "unchanged"} | {kind: kind for kind in _KINDS}
"""Counts of a comparison, and what they are called on the page."""


@dataclass(frozen=True)
class Before:
    """The result of the night before, and what came of comparing with it."""

    earlier: Earlier | None
    """None if it could not be looked for."""
    found: Diff | None
    foremost: Foremost
    failed: str = ""
    """Why there is no comparison."""


def changes(before: Before) -> Section:
    """Counts, and the rows that changed most."""
    title, night = "Since the night before", "the night before"
    if before.earlier is not None:
        title, night = f"Since {before.earlier.day}", f"{clipped(before.earlier.place)}, the night before"
    found, foremost = before.found, before.foremost
    if found is None:
        text = [f"There is no comparison with {night}: {clipped(before.failed)}."]
        return Section("changes", title, text, [], [])
    text = [f"Compared with {night}."]
    text += [f"{clipped(notice)}." for notice in found.notices]
    sides = {} if found.dn_graphs is None else {"dense groups": found.dn_graphs}
    sides["edges"] = found.edges
    counts = [
        (title, *("" if getattr(side, name) is None else number(getattr(side, name)) for side in sides.values()))
        for name, title in _COUNTS.items()
    ]
    tables = [Table("What changed", ("", *(f"{name}>" for name in sides)), counts)]
    if found.groups is not None:
        became = [(name, number(count)) for name, count in asdict(found.groups).items()]
        tables.append(Table("What became of the dense groups", ("", "dense groups>"), became))
    if found.dn_graphs is not None and foremost.dn_graphs is not None and len(foremost.dn_graphs):
        tables.append(
            Table(
                "Dense groups that changed, the highest λ first",
                (
                    "track>",
                    "change",
                    "fate",
                    "λ before>",
                    "λ now>",
                    "vertices before>",
                    "vertices now>",
                    "in both>",
                    "id before>",
                    "id now>",
                ),
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
                    for row in foremost.dn_graphs.to_pylist()
                ],
                _note(found.dn_graphs, len(foremost.dn_graphs), "dn_graphs.parquet"),
            )
        )
    if foremost.edges is not None:
        ends = foremost.edges.column_names[:2]
        tables.append(
            Table(
                "Edges whose λ changed most, of each kind of change",
                (*map(clipped, ends), "change", "λ before>", "λ now>"),
                [
                    (clipped(row[ends[0]]), clipped(row[ends[1]]), row["change"], *_both(row, "lambda"))
                    for row in foremost.edges.to_pylist()
                ],
                _note(found.edges, len(foremost.edges), "edges.parquet"),
            )
        )
    text.append(f"{share(found.edges.unchanged, found.edges.new) or 'None'} of the edges are as they were.")
    return Section("changes", title, text, [], tables, beside=len(tables))


def _track(row: Mapping[str, Any]) -> str:
    """The track of a group: it has one in both results if it continued."""
    track = row["track_old"] if row["track_new"] is None else row["track_new"]
    return "" if track is None else str(track)


def _fate(row: Mapping[str, Any]) -> str:
    """What became of a group, with the id of the one that it merged into or was split from."""
    if row["merged_into"] is not None:
        return f"merged into {row['merged_into']}"
    return row["fate"] if row["split_from"] is None else f"split from {row['split_from']}"


def _both(row: Mapping[str, Any], name: str) -> tuple[str, str]:
    old, new = (row[f"{name}_{end}"] for end in ("old", "new"))
    return "" if old is None else number(old), "" if new is None else number(new)


def _note(row: Changes, shown: int, file: str) -> str:
    more = sum(getattr(row, kind) or 0 for kind in _KINDS) - shown
    return f"{number(more)} more: edgemill diff OLD NEW --output FOLDER writes {file}." if more else ""
