"""Sample the whole neighbourhoods of a set S of vertices, in bounded memory.

A random sample of rows has hardly any triangles and few repeated rows. So all rows of smaller inputs are read, and rows
with an end in S are kept. A hash of the ids selects S. Every edge is kept with the same probability, with all its
repetitions, and all common neighbours of two vertices of S are known. From larger inputs, evenly spaced row groups, or
their first rows, are read.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from math import sqrt
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids import identity, order
from ..ids.identity import Ids
from ..ingest.reading import read_batches
from ..inputs.sources import Piece, Source

WITNESSES = 40_000
"""Target number of rows between two vertices of S. Of n rows, about 2 sqrt(n WITNESSES) are kept."""
KEPT_TEXT = 2**26
"""Target bytes of strings that are kept."""
STRETCHES = 64
"""The fewest stretches of a larger input that are read. Large row groups have several."""
MAX_READERS = 16
"""The most threads that read."""
_ALL = 2**64


@dataclass(frozen=True)
class Sample:
    """Rows of the input with an end in S, as edges. Vertices are numbered in id order."""

    rows: int
    """Rows of the input. An estimate if files do not store it and not all were read."""

    rows_read: int
    """Rows of the input that were read."""

    left_out: int
    """Rows read that have a null id or do not meet the condition."""

    self_loops: int
    """Rows read that are self-loops."""

    share: float
    """Share of all vertices that is in S."""

    ids: Ids
    """[vertices] ids of the vertices in S and their neighbours, ascending."""

    picked: NDArray[np.bool_]
    """[vertices] whether the vertex is in S, or only a neighbour."""

    low: NDArray[np.int32]
    """[edges] smaller end. Edges are distinct and sorted by (low, high)."""

    high: NDArray[np.int32]
    """[edges] larger end."""

    repeated: NDArray[np.int64]
    """[edges] number of rows with this edge."""

    edge_stretches: NDArray[np.int64]
    """[edges] number of stretches of the input with this edge; empty if all rows were read."""

    vertex_stretches: NDArray[np.int64]
    """[vertices of S] number of stretches with this vertex; empty if all rows were read."""

    stretches: int
    """Number of stretches read."""

    @property
    def is_whole(self) -> bool:
        """Whether all rows were read."""
        return self.rows_read == self.rows

    def __len__(self) -> int:
        """Number of edges."""
        return len(self.low)


@dataclass(frozen=True)
class _Kept:
    """The rows kept from one row group."""

    source: Ids
    target: Ids
    stretch: NDArray[np.int32]
    rows: int
    left_out: int
    self_loops: int


MIN_SHARE = 2.0**-60
"""The smallest share of hashes that selects S. Without it, a hub whose hash is 0 would keep the loop running."""


def take_sample(source: Source, most_rows: int) -> Sample:
    """Read at most about `most_rows` rows and keep those with an end in S. Deterministic.

    Raises InputError if the rows read are damaged or have ids that cannot be used.
    """
    pieces = _pieces(source, most_rows)
    whole = source.rows <= most_rows
    rows = sum(rows for _, rows in pieces)
    share = min(1.0, sqrt(WITNESSES / max(1, rows)))
    most_kept = 4 * sqrt(WITNESSES * rows) + WITNESSES
    text = sum(source.id_bytes(piece) for piece, _ in pieces) if source.kind == "string" else 0
    share = min(share, KEPT_TEXT / max(1, text))
    threads = max(1, min(len(pieces), os.cpu_count() or 1, MAX_READERS))
    parts = -(-STRETCHES // max(1, len(pieces)))
    with ThreadPoolExecutor(threads) as readers:
        kept = list(readers.map(lambda piece: _read(source, piece[0], piece[1], parts, share, whole), pieces))
    while _exceeds(kept, most_kept) and share > MIN_SHARE:  # all rows of a hub are kept
        share /= 2
        kept = [_fewer(part, share) for part in kept]
    return _sample(source, kept, parts, share, whole)


def _exceeds(kept: list[_Kept], most_rows: float) -> bool:
    text = sum(ids.nbytes for part in kept for ids in (part.source, part.target) if isinstance(ids, pa.Array))
    return sum(len(part.source) for part in kept) > most_rows or text > 4 * KEPT_TEXT


def _pieces(source: Source, most_rows: int) -> list[tuple[Piece, int]]:
    """Row groups, and the number of their first rows to read."""
    groups = [(Piece(f, (g,)), rows) for f, file in enumerate(source.files) for g, rows in enumerate(file.row_groups)]
    groups = [(piece, rows) for piece, rows in groups if rows]
    if source.rows <= most_rows:
        return groups
    ends = np.cumsum([rows for _, rows in groups])
    centres = (2 * np.arange(STRETCHES) + 1) * source.rows // (2 * STRETCHES)
    chosen, times = np.unique(np.searchsorted(ends, centres, side="right"), return_counts=True)
    each = max(1, most_rows // STRETCHES)
    both = zip(chosen.tolist(), times.tolist(), strict=True)
    return [(groups[g][0], min(groups[g][1], each * count)) for g, count in both]


def _read(source: Source, piece: Piece, rows: int, parts: int, share: float, whole: bool) -> _Kept:
    """Read the first `rows` rows of a row group, or all rows if the `whole` input is read, as `parts` stretches."""
    read = left_out = self_loops = 0
    none = identity.no_ids(source.kind)
    sources, targets, stretches = [none], [none], [np.zeros(0, np.int32)]
    for batch in read_batches(replace(source, weights=None), piece, None if whole and not source.is_counted else rows):
        before, read = read, read + len(batch) + batch.left_out.rows
        left_out += batch.left_out.rows
        first, second = identity.hashes(batch.source), identity.hashes(batch.target)
        self_loops += int(np.count_nonzero(first == second))
        touching = np.flatnonzero(_picked(first, share) | _picked(second, share))
        sources.append(identity.take(batch.source, touching))
        targets.append(identity.take(batch.target, touching))
        stretches.append(((before + touching) * parts // rows).astype(np.int32))
    kept = identity.concatenate(sources), identity.concatenate(targets), np.concatenate(stretches)
    return _Kept(*kept, read, left_out, self_loops)


def _picked(hashes: NDArray[np.uint64], share: float) -> NDArray[np.bool_]:
    return hashes <= np.uint64(min(int(share * _ALL), _ALL - 1))


def _fewer(part: _Kept, share: float) -> _Kept:
    first, second = identity.hashes(part.source), identity.hashes(part.target)
    left = np.flatnonzero(_picked(first, share) | _picked(second, share))
    kept = identity.take(part.source, left), identity.take(part.target, left), part.stretch[left]
    return _Kept(*kept, part.rows, part.left_out, part.self_loops)


def _sample(source: Source, kept: list[_Kept], parts: int, share: float, whole: bool) -> Sample:
    """The kept rows as edges. Clears `kept` to free memory."""
    names = ("rows", "left_out", "self_loops")
    rows, left_out, self_loops = (sum(getattr(part, name) for part in kept) for name in names)
    stretches = parts * len(kept)
    stretch = np.concatenate([np.zeros(0, np.int32), *(parts * n + part.stretch for n, part in enumerate(kept))])
    none = identity.no_ids(source.kind)
    columns = [identity.concatenate([none, *(getattr(part, end) for part in kept)]) for end in ("source", "target")]
    kept.clear()
    ids, first, second = identity.encode(*columns)
    del columns
    picked = _picked(identity.hashes(ids), share)
    proper = first != second
    edge = np.minimum(first, second).astype(np.int64) * len(ids) + np.maximum(first, second)
    edge_stretches = vertex_stretches = np.zeros(0, np.int64)
    if not whole:
        edge_stretches = _spread(edge[proper], stretch[proper])
        vertex, touched = np.concatenate([first, second]), picked[np.concatenate([first, second])]
        vertex_stretches = _spread(vertex[touched], np.concatenate([stretch, stretch])[touched])
    del first, second, stretch
    edge = edge[proper]
    edge.sort()
    heads = np.flatnonzero(order.heads(edge))
    repeated = np.diff(heads, append=len(edge))
    edge = edge[heads]
    low, high = (edge // len(ids)).astype(np.int32), (edge % len(ids)).astype(np.int32)
    facts = rows, left_out, self_loops, share, ids, picked, low, high, repeated
    return Sample(rows if whole else source.rows, *facts, edge_stretches, vertex_stretches, stretches)


def _spread(values: NDArray[Any], stretch: NDArray[np.int32]) -> NDArray[np.int64]:
    """The number of stretches with each distinct value, the values ascending. `stretch` must ascend."""
    ascending = np.argsort(values, kind="stable")
    values, stretch = values[ascending], stretch[ascending]
    first = order.heads(values)
    is_new = first.copy()
    is_new[1:] |= stretch[1:] != stretch[:-1]
    heads = np.flatnonzero(first)
    return np.add.reduceat(is_new, heads, dtype=np.int64) if len(heads) else heads
