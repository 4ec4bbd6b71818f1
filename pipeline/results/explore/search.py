"""Search for vertices by part of their id or label. Tables are read in batches, up to a bound."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from ....tasks.ids.display import display_id
from ..groups.attributes import label_column, labels_of
from ..lookup import sorted_table
from ..result import Result
from ..rows import Vertex, find

MOST_MATCHES = 50
"""Vertices that one search finds."""
MOST_ROWS = 50_000_000
"""Rows of a table that one search reads, which takes seconds."""


@dataclass(frozen=True)
class Match:
    """A vertex that was found."""

    vertex: Vertex
    label: str | None

    @property
    def id(self) -> str:
        """The vertex's id as text."""
        return str(display_id(self.vertex.id))


@dataclass(frozen=True)
class Matches:
    """The vertices that a search found."""

    found: list[Match]
    """Matches of a whole id or label first, then of its beginning, then the others; each in the order of the table."""
    more: bool
    """Whether there may be more, because the search stopped at one of its bounds."""


def search(result: Result, text: str, id: int | str | None = None) -> Matches:
    """The vertices with `text` in their id or label, ignoring case, and the vertex `id`; at most MOST_MATCHES.

    Ids are searched if they are text or integers. Raises InputError for damage.
    """
    ids: dict[Any, None] = {} if id is None else {id: None}
    more = False
    label = label_column(result)
    for table, column in (("attributes", label), ("vertices", "id")):
        if column is None:
            continue
        found, stopped = _matching(result, table, column, text)
        ids.update(dict.fromkeys(found))
        more |= stopped
    chosen = list(ids)[:MOST_MATCHES]
    rows = [find(result, Vertex, id) for id in chosen]
    labels = labels_of(result, chosen)
    matches = [Match(row, name) for row, name in zip(rows, labels, strict=True) if row is not None]
    matches.sort(key=lambda match: _rank(match, text.casefold()))
    return Matches(matches, more or len(ids) > len(chosen))


def _matching(result: Result, table: str, column: str, text: str) -> tuple[list[Any], bool]:
    """The ids of the first rows with the text in `column`, and whether there may be more rows."""
    field, kind = ds.field(column), getattr(result, table).schema.field(column).type
    if pa.types.is_integer(kind):
        field = field.cast(pa.string())
    elif not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
        return [], False
    where = pc.match_substring(field, text, ignore_case=True)
    rows = sorted_table(result, table)
    found = rows.search(rows.row_groups, where, ["id"], MOST_MATCHES, MOST_ROWS)
    return found.table["id"].to_pylist(), found.more_rows or found.full


def _rank(match: Match, text: str) -> int:
    names = [match.id.casefold(), (match.label or "").casefold()]
    return 0 if text in names else 1 if any(name.startswith(text) for name in names) else 2
