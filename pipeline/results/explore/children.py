"""The largest children of components, from rows of the hierarchy that are read in batches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..rows import Component


@dataclass(frozen=True)
class Children:
    """The children of one component."""

    largest: list[Component]
    """The largest children by edges, largest first."""
    count: int
    """The number of all children."""
    edges: int
    """Edges of all children."""


class LargestChildren:
    """Collects the `most` largest children of each parent from rows of the hierarchy."""

    COLUMNS = ("component", "k", "parent", "vertices", "edges")

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: dict[str, NDArray[np.int64]] = {name: np.zeros(0, np.int64) for name in self.COLUMNS}
        self._counts: dict[int, tuple[int, int]] = {}

    def add(self, batch: pa.RecordBatch) -> None:
        """Add rows of the hierarchy. A null parent counts as 0."""
        rows = {name: pc.fill_null(batch[name], 0).to_numpy(zero_copy_only=False) for name in self.COLUMNS}
        parents, index = np.unique(rows["parent"], return_inverse=True)
        edges = np.zeros(len(parents), np.int64)
        np.add.at(edges, index, rows["edges"])
        for parent, count, sum_ in zip(parents.tolist(), np.bincount(index).tolist(), edges.tolist(), strict=True):
            before = self._counts.get(parent, (0, 0))
            self._counts[parent] = before[0] + count, before[1] + sum_
        both = {name: np.concatenate([self._kept[name], rows[name].astype(np.int64)]) for name in self.COLUMNS}
        order = np.lexsort((both["component"], -both["edges"], both["parent"]))
        parent = both["parent"][order]
        rank = np.arange(len(order)) - np.searchsorted(parent, parent)
        self._kept = {name: both[name][order[rank < self._most]] for name in self.COLUMNS}

    def by_parent(self, roots: bool) -> dict[int | None, Children]:
        """Parent → its children. `roots` says that the rows had no parent: their parent is then None."""
        found: dict[int, list[Component]] = {parent: [] for parent in self._counts}
        for component, k, parent, *sizes in zip(*(self._kept[name].tolist() for name in self.COLUMNS), strict=True):
            found[parent].append(Component(component, k, None if roots else parent, *sizes))
        return {None if roots else parent: Children(found[parent], *self._counts[parent]) for parent in found}
