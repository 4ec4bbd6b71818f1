"""New tracks. DN-graphs get them in the order of λ, vertices and edges, the largest first, then of the id."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..dense.merge import Components
from ..ids import order
from ..messages import Bundle, bundle
from .inheritance import InheritedTracks

Int = NDArray[np.int64]


@dataclass(frozen=True)
class Shapes(SizedArrays):
    """Counts of a bucket's DN-graphs without a track by shape: λ, vertices and edges. `len()` counts shapes."""

    shape: Int
    """[shapes, 3] λ, vertices and edges, the largest first."""
    count: Int
    """[shapes] DN-graphs."""

    def __len__(self) -> int:
        return len(self.count)


@dataclass(frozen=True)
class Numbers(SizedArrays):
    """The first track for each shape that a bucket has sent. `len()` counts shapes."""

    first: Int

    def __len__(self) -> int:
        return len(self.first)


def send_shapes(bucket: int, graphs: Components, taken: InheritedTracks) -> Bundle[Shapes]:
    """Bucket → one task: the shapes of its DN-graphs without a track."""
    shapes, _ = _shapes(graphs, taken)
    return bundle(bucket, {0: shapes})


def number_shapes(first: int, parts: Mapping[int, Shapes]) -> Bundle[Numbers]:
    """One task → buckets: tracks from `first` on. Ids of DN-graphs ascend over the buckets."""
    senders = sorted(parts)
    if not senders:
        return bundle(0, {})
    shape = np.concatenate([parts[sender].shape for sender in senders])
    count = np.concatenate([parts[sender].count for sender in senders])
    sizes = [len(parts[sender]) for sender in senders]
    by = _largest_first(shape)  # stable: within one shape the order of the buckets
    numbers = np.empty(len(count), np.int64)
    numbers[by] = first + np.cumsum(count[by]) - count[by]
    runs = np.split(numbers, np.cumsum(sizes)[:-1])
    return bundle(0, {sender: Numbers(run) for sender, run in zip(senders, runs, strict=True)})


def collect_tracks(graphs: Components, taken: InheritedTracks, parts: Mapping[int, Numbers]) -> Int:
    """[DN-graphs] tracks, inherited or new."""
    track = taken.track.copy()
    shapes, rows = _shapes(graphs, taken)
    for part in parts.values():
        within = np.arange(len(rows)) - np.repeat(np.cumsum(shapes.count) - shapes.count, shapes.count)
        track[rows] = np.repeat(part.first, shapes.count) + within
    return track


def _shapes(graphs: Components, taken: InheritedTracks) -> tuple[Shapes, NDArray[np.intp]]:
    """The shapes of DN-graphs without a track, and the rows of these in the order of shapes, then of ids."""
    rows = np.flatnonzero(taken.track == 0)
    shape = np.stack([graphs.level[rows], graphs.vertices[rows], graphs.edges[rows]], axis=1).astype(np.int64)
    by = _largest_first(shape)
    ordered = shape[by]
    first = np.flatnonzero(order.heads(ordered[:, 0]) | order.heads(ordered[:, 1]) | order.heads(ordered[:, 2]))
    return Shapes(ordered[first], np.diff(np.append(first, len(rows)))), rows[by]


def _largest_first(shape: Int) -> NDArray[np.intp]:
    return np.lexsort((-shape[:, 2], -shape[:, 1], -shape[:, 0]))
