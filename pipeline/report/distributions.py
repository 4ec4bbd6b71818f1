"""Counts for the charts, in bounded memory: edges by ranges of λ, DN-graphs by λ and size, and the top DN-graphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..results.lookup import DNGraph, rows_of
from ..results.result import Result
from ..results.streaming import TopK, batches

if TYPE_CHECKING:
    import pyarrow.dataset as ds

MOST_RANGES = 40
EVEN_BELOW = 1000
"""If the highest λ is below this, all ranges have one width; otherwise their width grows with λ."""


@dataclass(frozen=True)
class Levels:
    """Edges and vertices by range of λ. Each list has one entry for each range, ascending."""

    first: list[int]
    last: list[int]
    edges: list[int]
    """Edges with λ in the range."""
    edges_above: list[int]
    """Edges with λ ≥ `first`: the size of the (first + 2)-truss."""
    vertices_above: list[int]
    """Vertices of the edges in `edges_above`."""
    high_above: list[int] | None
    """Edges whose interval ends at `first` or above; None if the run converged."""

    @property
    def names(self) -> list[str]:
        """The ranges as text."""
        pairs = zip(self.first, self.last, strict=True)
        return [str(first) if first == last else f"{first}-{last}" for first, last in pairs]


def range_starts(top: int) -> NDArray[np.int64]:
    """The first λ of each range of 0 … `top`: at most MOST_RANGES numbers, int64, ascending from 0."""
    if top < EVEN_BELOW:
        return np.arange(0, top + 1, -(-(top + 1) // MOST_RANGES), dtype=np.int64)
    wide = np.geomspace(1, top + 1, MOST_RANGES)[:-1].round().astype(np.int64)
    return np.unique(np.append(wide, 0))


def levels(result: Result) -> Levels:
    """Count edges and vertices by the manifest's histograms, or vertices by their table in results of earlier releases.

    Raises InputError for damage.
    """
    manifest = result.manifest
    high = manifest.lambda_high
    top = max(manifest.lam.max, high.max if high else 0)
    starts = range_starts(top)
    edges = _counted(starts, manifest.lam.histogram)
    known = manifest.lam.vertices
    vertices = _from_table(result, starts) if known is None else _counted(starts, known)
    return Levels(
        first=starts.tolist(),
        last=[*(starts[1:] - 1).tolist(), top],
        edges=edges.tolist(),
        edges_above=_from_above(edges),
        vertices_above=_from_above(vertices),
        high_above=_from_above(_counted(starts, high.histogram)) if high else None,
    )


def _from_table(result: Result, starts: NDArray[np.int64]) -> NDArray[np.int64]:
    """Vertices with edges by range of λ, from their table, which is read in batches."""
    column = "lambda" if result.manifest.exact else "lambda_low"
    vertices = np.zeros_like(starts)
    for batch in batches(result.vertices, [column, "degree"]):
        lam = batch[column].to_numpy()[batch["degree"].to_numpy() > 0]
        vertices += np.bincount(np.searchsorted(starts, lam, "right") - 1, minlength=starts.size)
    return vertices


def _counted(starts: NDArray[np.int64], histogram: Sequence[tuple[int, int]]) -> NDArray[np.int64]:
    pairs = np.array(histogram, np.int64).reshape(-1, 2)
    counts = np.zeros_like(starts)
    np.add.at(counts, np.searchsorted(starts, pairs[:, 0], "right") - 1, pairs[:, 1])
    return counts


def _from_above(counts: NDArray[np.int64]) -> list[int]:
    return list(counts[::-1].cumsum()[::-1].tolist())


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
class ShownGroups:
    """The DN-graphs that a page shows."""

    by_lambda: list[DNGraph]
    by_vertices: list[DNGraph]
    cells: list[Cell]


def groups(table: ds.Dataset, top: int, most: int) -> ShownGroups:
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
    return ShownGroups(rows_of(DNGraph, by_lambda.rows()), rows_of(DNGraph, by_vertices.rows()), cells)


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
