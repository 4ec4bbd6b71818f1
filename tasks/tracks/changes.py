"""Counts of changes since the night before: of the DN-graphs of a bucket, and of those of the earlier result.

The rules are those of `edgemill diff`:

- An old and a new DN-graph are the same, and the old one continued, if `MatchedPairs.same` says so.
- A new one is a merge if two or more old ones each have more than half of their vertices in it.
- An old one was split if two or more new ones each have more than half of their vertices from it.
- An old one that neither continued nor has a part in a merge or split died. A new one like that was born.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..dense.merge import Components
from ..messages import Bundle, bundle
from .overlaps import MatchedPairs

Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class NewCounts:
    """Counts of the new DN-graphs of a bucket."""

    continued: int
    grown: int
    """Continued ones with more vertices than before."""
    shrunk: int
    """Continued ones with fewer vertices than before."""
    merged: int
    unmatched: int
    """Those that neither continue an old one nor are a merge."""


@dataclass(frozen=True)
class OldCounts:
    """Counts of the DN-graphs of the night before."""

    survived: int
    """Those that continued, merged or were split. The others died."""
    split: int
    split_parts: int
    """Unmatched DN-graphs of this result that come from a split. The other unmatched ones were born."""


@dataclass(frozen=True)
class PairOutcomes(SizedArrays):
    """Pairs of DN-graphs on their way to the bucket that counts the old ones. `len()` counts pairs."""

    old: NDArray[np.int64]
    """[pairs] id of the old one."""
    survives: Bools
    """[pairs] whether the old one continues as the new one, or the new one is a merge with more than half of it."""
    mostly_from: Bools
    """[pairs] whether more than half of the new one comes from it."""
    unmatched: Bools
    """[pairs] whether the new one neither continues an old one nor is a merge."""

    def __len__(self) -> int:
        return len(self.old)


def count_new(graphs: Components, before: MatchedPairs) -> NewCounts:
    """Count the new DN-graphs of a bucket. `before` are its pairs with old ones."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    same = before.same(graphs)
    growth = graphs.vertices[before.graph[same]] - before.vertices[same]
    return NewCounts(
        continued=int(continues.sum()),
        grown=int((growth > 0).sum()),
        shrunk=int((growth < 0).sum()),
        merged=int(merges.sum()),
        unmatched=int((~continues & ~merges).sum()),
    )


def send_outcomes(bucket: int, buckets: int, graphs: Components, before: MatchedPairs) -> Bundle[PairOutcomes]:
    """Bucket of new DN-graphs → buckets of old ones. An old one is in the bucket of its id modulo `buckets`."""
    continues, merges = _continues(graphs, before), _merges(graphs, before)
    survives = before.same(graphs) | (_mostly_in(before) & merges[before.graph])
    mostly_from = 2 * before.common > graphs.vertices[before.graph]
    unmatched = ~(continues | merges)[before.graph]
    receiver = before.old % buckets
    parts = {}
    for b in range(buckets):
        own = receiver == b
        parts[b] = PairOutcomes(before.old[own], survives[own], mostly_from[own], unmatched[own])
    return bundle(bucket, parts)


def count_old(parts: Mapping[int, PairOutcomes]) -> OldCounts:
    """Count the old DN-graphs of a bucket that have vertices in new ones."""
    if not parts:
        return OldCounts(0, 0, 0)
    old, at = np.unique(np.concatenate([part.old for part in parts.values()]), return_inverse=True)
    survives, mostly_from, unmatched = (
        np.concatenate([getattr(part, name) for part in parts.values()])
        for name in ("survives", "mostly_from", "unmatched")
    )
    splits = np.bincount(at[mostly_from], minlength=len(old)) > 1
    survived = splits | (np.bincount(at[survives], minlength=len(old)) > 0)
    return OldCounts(int(survived.sum()), int(splits.sum()), int((mostly_from & unmatched & splits[at]).sum()))


def _continues(graphs: Components, before: MatchedPairs) -> Bools:
    """[DN-graphs] whether each is the same as one of the night before."""
    found = np.zeros(len(graphs), np.bool_)
    found[before.graph[before.same(graphs)]] = True
    return found


def _merges(graphs: Components, before: MatchedPairs) -> Bools:
    """[DN-graphs] whether two or more of the night before each have more than half of their vertices in it."""
    return np.bincount(before.graph[_mostly_in(before)], minlength=len(graphs)) > 1


def _mostly_in(before: MatchedPairs) -> Bools:
    return 2 * before.common > before.vertices


@dataclass(frozen=True)
class Fates:
    """Counts of the fates of DN-graphs between an old and a new result."""

    continued: int
    """DN-graphs that are in both results."""
    grown: int
    """Continued DN-graphs with more vertices in the new result."""
    shrunk: int
    """Continued DN-graphs with fewer vertices in the new result."""
    born: int
    """New DN-graphs that continue no old one and are not part of a merge or split."""
    died: int
    """Old DN-graphs that do not continue and are not part of a merge or split."""
    merged: int
    """New DN-graphs that are merges."""
    split: int
    """Old DN-graphs that were split."""


def summed(later: Sequence[NewCounts], earlier: Sequence[OldCounts], graphs: int) -> Fates:
    """The fates of the `graphs` DN-graphs of the previous night, from the counts of all buckets."""

    def total(name: str, counts: Sequence[NewCounts] | Sequence[OldCounts]) -> int:
        return sum(map(attrgetter(name), counts))

    return Fates(
        continued=total("continued", later),
        grown=total("grown", later),
        shrunk=total("shrunk", later),
        born=total("unmatched", later) - total("split_parts", earlier),
        died=graphs - total("survived", earlier),
        merged=total("merged", later),
        split=total("split", earlier),
    )
