"""Memory of the rows of a block while they are read and cleaned, as a plan projects it."""

from __future__ import annotations

from math import expm1

from ..tasks.coding import PART_BYTES
from ..tasks.estimate import Figures
from ..tasks.order import fits_table
from ..tasks.sources import Source

__all__ = ["distinct_of", "in_parts", "row_bytes"]

ROW_BYTES = 50
"""Memory of a row of integers while it is read and cleaned, beside what a worker takes before it holds anything."""
HASHED_BYTES = 85
"""More of it for each distinct id of the block, where ids are too far apart for a table of all between them."""
TEXT_ROW_BYTES = 60
"""The same of a row of strings."""
TEXT_BYTES = 4.5
"""More of it for each byte of an id: both ends are there, twice and more; of rows that are coded together."""
TEXT_KEPT = 3
"""Times that the distinct ids of a block are in memory when what was coded apart is merged."""


def row_bytes(source: Source, graph: Figures, rows: int) -> float:
    """Memory of each row of a block while it is read and cleaned, in a block of so many."""
    if source.kind == "string":
        text = 2 * rows * graph.id_bytes
        distinct = distinct_of(graph.vertices.likely, 2 * rows) * graph.id_bytes
        merged = TEXT_KEPT * distinct if in_parts(source, graph, rows) else 0
        return TEXT_ROW_BYTES + (TEXT_BYTES / 2 * min(text, PART_BYTES) + merged) / max(rows, 1)
    if fits_table(graph.id_span, 2 * rows):
        return ROW_BYTES
    return ROW_BYTES + HASHED_BYTES * distinct_of(graph.vertices.likely, 2 * rows) / max(rows, 1)


def in_parts(source: Source, graph: Figures, rows: int) -> bool:
    """Whether the strings of a block are coded part by part and merged: what that frees stays with any process."""
    return source.kind == "string" and 2 * rows * graph.id_bytes > PART_BYTES


def distinct_of(among: int, drawn: int) -> float:
    """How many different ones there are of so many that are drawn: at most, as what lies together repeats more."""
    return among * -expm1(-drawn / among) if among else 0.0
