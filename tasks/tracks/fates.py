"""Counts of what became of DN-graphs, of those of a bucket and those of the night before. The rules are those of
`edgemill diff`:

- Two DN-graphs are the same, and the old one continued, as `Matched.same` says.
- A new one is a merge if two or more old ones each have more than half of their vertices in it.
- An old one was split if two or more new ones each have more than half of their vertices from it.
- What does not continue and has no part in either died, or was born.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.held import Held
from ..dense.merge import Components
from ..messages import Bundle, bundle
from .overlaps import Matched

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class LaterCounts:
    """Of the DN-graphs of a bucket."""

    continued: int
    grown: int
    """Of these, with more vertices than before."""
    shrunk: int
    """Of these, with fewer."""
    merged: int
    apart: int
    """Those that neither continue an old one nor are a merge."""


@dataclass(frozen=True)
class EarlierCounts:
    """Of DN-graphs of the night before."""

    left: int
    """Those that continued, merged or were split: the others died."""
    split: int
    parts: int
    """Those that are apart in this result, and came from a split: the others that are apart were born."""


@dataclass(frozen=True)
class Matches(Held):
    """Pairs of DN-graphs on their way to the bucket that counts the earlier ones. `len()` counts pairs."""

    old: NDArray[np.int64]
    """[pairs] id of the earlier one."""
    goes_on: Bools
    """[pairs] whether it continues as the new one, or the new one is a merge that more than half of it is in."""
    mostly_from: Bools
    """[pairs] whether more than half of the new one comes from it."""
    apart: Bools
    """[pairs] whether the new one neither continues an old one nor is a merge."""

    def __len__(self) -> int:
        return len(self.old)


def count_later(graphs: Components, before: Matched) -> LaterCounts:
    """Count the DN-graphs of a bucket."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    same = before.same(graphs)
    growth = graphs.vertices[before.graph[same]] - before.vertices[same]
    return LaterCounts(
        continued=int(continues.sum()),
        grown=int((growth > 0).sum()),
        shrunk=int((growth < 0).sum()),
        merged=int(merges.sum()),
        apart=int((~continues & ~merges).sum()),
    )


def send_matches(bucket: int, buckets: int, graphs: Components, before: Matched) -> Bundle[Matches]:
    """Buckets of DN-graphs → buckets of earlier DN-graphs, which are dealt out by their ids."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    goes_on = before.same(graphs) | (_mostly_in(before) & merges[before.graph])
    mostly_from = 2 * before.common > graphs.vertices[before.graph]
    apart = ~(continues | merges)[before.graph]
    to = before.old % buckets
    parts = {}
    for b in range(buckets):
        own = to == b
        parts[b] = Matches(before.old[own], goes_on[own], mostly_from[own], apart[own])
    return bundle(bucket, parts)


def count_earlier(parts: Mapping[int, Matches]) -> EarlierCounts:
    """Count the earlier DN-graphs of a bucket that have vertices in new ones."""
    if not parts:
        return EarlierCounts(0, 0, 0)
    old, at = np.unique(np.concatenate([part.old for part in parts.values()]), return_inverse=True)
    goes_on, mostly_from, apart = (
        np.concatenate([getattr(part, name) for part in parts.values()]) for name in ("goes_on", "mostly_from", "apart")
    )
    splits = np.bincount(at[mostly_from], minlength=len(old)) > 1
    left = splits | (np.bincount(at[goes_on], minlength=len(old)) > 0)
    return EarlierCounts(int(left.sum()), int(splits.sum()), int((mostly_from & apart & splits[at]).sum()))


def _continues(graphs: Components, before: Matched) -> Bools:
    """[DN-graphs] whether each is the same as one of the night before."""
    found = np.zeros(len(graphs), np.bool_)
    found[before.graph[before.same(graphs)]] = True
    return found


def _merges(graphs: Components, before: Matched) -> Bools:
    """[DN-graphs] whether two or more of the night before each have more than half of their vertices in it."""
    return np.bincount(before.graph[_mostly_in(before)], minlength=len(graphs)) > 1


def _mostly_in(before: Matched) -> Bools:
    return 2 * before.common > before.vertices
