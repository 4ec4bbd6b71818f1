"""Memory of the rows of a block while they are read and cleaned, as a plan projects it."""

from __future__ import annotations

from math import expm1

from ...tasks.estimate.estimate import GraphEstimate
from ...tasks.ids.order import fits_table
from ...tasks.ingest.blocks import PART_BYTES
from ...tasks.inputs.sources import Source

ROW_BYTES = 50
"""Memory of a row of integer ids while it is read and cleaned, besides that of an idle worker."""
HASHED_BYTES = 85
"""Additional memory for each distinct id of the block, if the ids are too far apart for a lookup table."""
TEXT_ROW_BYTES = 60
"""Memory of a row of string ids."""
TEXT_BYTES = 4.5
"""Additional memory for each byte of an id, for rows that are coded together. Memory holds both ends at least twice."""
TEXT_KEPT = 3
"""Copies in memory of the distinct ids of a block while separately coded parts are merged."""


def row_bytes(source: Source, graph: GraphEstimate, rows: int) -> float:
    """Memory of each row of a block of `rows` rows while it is read and cleaned."""
    if source.kind == "string":
        text = 2 * rows * graph.id_bytes
        distinct = distinct_ids(graph, rows) * graph.id_bytes
        merged = TEXT_KEPT * distinct if in_parts(source, graph, rows) else 0
        return TEXT_ROW_BYTES + (TEXT_BYTES / 2 * min(text, PART_BYTES) + merged) / max(rows, 1)
    if fits_table(graph.id_span, 2 * rows):
        return ROW_BYTES
    return ROW_BYTES + HASHED_BYTES * distinct_ids(graph, rows) / max(rows, 1)


def in_parts(source: Source, graph: GraphEstimate, rows: int) -> bool:
    """Whether the strings of a block are coded part by part and merged. A process keeps the memory that this frees."""
    return source.kind == "string" and 2 * rows * graph.id_bytes > PART_BYTES


def distinct_ids(graph: GraphEstimate, rows: int) -> float:
    """Distinct ids among the ends of some rows: their expected number, or the most that there can be if the graph is
    known by upper bounds.
    """
    among, drawn = graph.vertices.likely, 2 * rows
    return min(among, drawn) if graph.is_bound else distinct_of(among, drawn)


def distinct_of(among: int, drawn: int) -> float:
    """Expected number of distinct values among `drawn` random draws from `among` values.

    Rows that lie together repeat ids more often, so this is an upper estimate.
    """
    return among * -expm1(-drawn / among) if among else 0.0
