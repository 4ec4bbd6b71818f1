"""The top DN-graphs, some of their members, and counts of DN-graphs by λ and size, in bounded memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..rows import DNGraph, rows_of
from ..streaming import batches
from ..top_k import TopK
from .levels import range_starts

if TYPE_CHECKING:
    import pyarrow.dataset as ds

SIZES = np.unique(np.geomspace(3, 2**62, 2 * 62).round().astype(np.int64))
"""First size of each range of sizes: two ranges for each doubling."""


@dataclass(frozen=True)
class Cell:
    """The DN-graphs of one range of λ and one range of sizes."""

    lowest: int
    """The smallest λ among them."""
    highest: int
    """The largest λ among them."""
    vertices: int
    """Vertices of the largest of them."""
    count: int


@dataclass(frozen=True)
class Groups:
    """The DN-graphs that a page shows."""

    by_lambda: list[DNGraph]
    by_vertices: list[DNGraph]
    cells: list[Cell]


def groups(table: ds.Dataset, top: int, most: int) -> Groups:
    """The first `most` DN-graphs by λ and by vertices, and counts of all of them by λ and size.

    `table` is that of the DN-graphs, `top` the highest λ. Raises InputError for damage.
    """
    starts = range_starts(top)
    counts = np.zeros((starts.size, SIZES.size), np.int64)
    largest, highest = np.zeros_like(counts), np.zeros_like(counts)
    lowest = np.full_like(counts, top)
    by_lambda, by_vertices = (TopK(table.schema, by, most) for by in ("lambda", "vertices"))
    for batch in batches(table, table.schema.names):
        by_lambda.add(batch)
        by_vertices.add(batch)
        lam, vertices = batch["lambda"].to_numpy(), batch["vertices"].to_numpy()
        at = np.searchsorted(starts, lam, "right") - 1, np.searchsorted(SIZES, vertices, "right") - 1
        np.add.at(counts, at, 1)
        np.maximum.at(largest, at, vertices)
        np.minimum.at(lowest, at, lam)
        np.maximum.at(highest, at, lam)
    filled = np.nonzero(counts)
    columns = (column[filled].tolist() for column in (lowest, highest, largest, counts))
    cells = [Cell(*cell) for cell in zip(*columns, strict=True)]
    return Groups(rows_of(DNGraph, by_lambda.rows()), rows_of(DNGraph, by_vertices.rows()), cells)


def members(table: ds.Dataset, wanted: Sequence[int], most: int) -> dict[int, list[Any]]:
    """The first `most` vertices of each of the DN-graphs `wanted`, by id. Raises InputError for damage."""
    found: dict[int, list[Any]] = {group: [] for group in wanted}
    in_groups = pc.field("dn_graph").isin(pa.array(sorted(found), pa.int64()))
    for batch in batches(table, ["dn_graph", "vertex"], in_groups):
        numbers = batch["dn_graph"]
        for group in pc.unique(numbers).to_pylist():
            vertices = batch["vertex"].filter(pc.equal(numbers, group))
            found[group] = sorted([*found[group], *vertices[:most].to_pylist()])[:most]
    return found
