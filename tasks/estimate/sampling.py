"""Sample the whole neighbourhoods of a set S of vertices, in bounded memory, and estimate counts from the sample.

A random sample of rows has hardly any triangles and few repeated rows. So all rows of smaller inputs are read, and rows
with an end in S are kept. A hash of the ids selects S. Every edge is kept with the same probability, with all its
repetitions, and all common neighbours of two vertices of S are known. From larger inputs, evenly spaced row groups, or
their first rows, are read.

If all rows were read, the sampled share is known, and counts of edges and vertices are scaled by it. Otherwise the
number of new edges in the unread rows is estimated from the number of sampled edges that occur in one, two or more
stretches of the input. If no edge occurs in three stretches, edges are assumed to occur at most twice, as in files that
list both directions, and the estimate counts pairs (Bonferroni). Else Chao's incidence-based estimate is extrapolated
to all stretches (Colwell et al., J. Plant Ecology 2012).
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


@dataclass(frozen=True)
class EstimatedCount:
    """An estimated count with a range."""

    likely: int
    least: int
    """Lower end of the plausible range."""
    most: int
    """Upper end of the plausible range."""


def count_edges(sample: Sample) -> EstimatedCount:
    """The estimated number of distinct edges of the input."""
    proper = sample.rows_read - sample.left_out - sample.self_loops
    kept = int(sample.repeated.sum())
    scale = proper / kept if kept else 0.0
    return _extrapolate(sample, len(sample) * scale if kept else float(proper), sample.edge_stretches, scale)


def count_vertices(sample: Sample) -> EstimatedCount:
    """The estimated number of vertices of the input."""
    return _extrapolate(
        sample, np.count_nonzero(sample.picked) / sample.share, sample.vertex_stretches, 1 / sample.share
    )


def _extrapolate(sample: Sample, seen: float, stretches: NDArray[np.int64], scale: float) -> EstimatedCount:
    """The estimate from `seen`, the count in the rows read, and `stretches`, the number of stretches with each item.

    One sampled item stands for `scale` items.
    """
    if sample.is_whole:
        return EstimatedCount(*[round(seen)] * 3)
    read = sample.rows_read / sample.rows
    if not len(stretches):
        return EstimatedCount(*[round(seen / read)] * 3)
    incidences, once, twice = (
        float(x) * scale for x in (stretches.sum(), (stretches == 1).sum(), (stretches == 2).sum())
    )
    pairs = max(seen, (incidences - twice / read) / read)
    unseen = once**2 / (2 * max(twice, scale))
    rate = once / (sample.stretches * unseen + once) if once else 0.0
    chao = seen + unseen * (1 - (1 - rate) ** (sample.stretches * (1 / read - 1)))
    likely = pairs if stretches.max() < 3 else chao
    return EstimatedCount(round(likely), round(min(pairs, chao)), round(max(likely, seen / read)))


MAX_WITNESSES = 16_000
"""The most edges whose triangles are counted."""
MAX_LOOKED_UP = 500_000
"""The most neighbours of these edges' ends that are looked up."""
SEED = 1


@dataclass(frozen=True)
class Witnesses:
    """Edges between vertices of S, with all their triangles if all rows were read."""

    whole: bool
    """Whether all rows were read."""

    closable: float
    """Upper bound of the share of edges in triangles: edges whose ends in S have other neighbours."""

    support: NDArray[np.int64]
    """[witnesses] triangles of each of the first edges."""

    @property
    def with_triangles(self) -> float:
        """Share of the edges with triangles, or an upper bound of it if the sample does not tell, as for a star."""
        if not self.whole:
            return 1.0
        return np.count_nonzero(self.support) / len(self.support) if len(self.support) else self.closable

    @property
    def mean_triangles(self) -> float | None:
        """Mean number of triangles of an edge, or None if the sample does not tell."""
        return float(self.support.mean()) if self.whole and len(self.support) else None


def find_witnesses(sample: Sample) -> Witnesses:
    """Take the edges between vertices of S, and find the triangles of up to MAX_WITNESSES of them."""
    vertices, picked = len(sample.picked), sample.picked
    seen = np.bincount(sample.low, minlength=vertices) + np.bincount(sample.high, minlength=vertices)
    inside = np.flatnonzero(picked[sample.low] & picked[sample.high])
    inside = np.random.default_rng(SEED).permutation(inside)
    low, high = sample.low[inside], sample.high[inside]
    shorter = np.where(seen[low] <= seen[high], low, high)[:MAX_WITNESSES]
    shorter = shorter[: np.searchsorted(np.cumsum(seen[shorter]), MAX_LOOKED_UP) + 1]
    longer = low[: len(shorter)] + high[: len(shorter)] - shorter
    support = np.bincount(_common(sample, shorter, longer), minlength=len(shorter))
    return Witnesses(sample.is_whole, _closable(sample, seen), support)


def _closable(sample: Sample, seen: NDArray[np.int64]) -> float:
    """Share of the edges whose ends in S have another neighbour. All neighbours of a vertex in S are in the sample."""
    alone = sample.picked & (seen < 2)
    return 1 - np.count_nonzero(alone[sample.low] | alone[sample.high]) / len(sample) if len(sample) else 1.0


def _common(sample: Sample, one: NDArray[np.int32], other: NDArray[np.int32]) -> NDArray[np.int64]:
    """Of pairs of vertices, the pair of each common neighbour."""
    vertices = len(sample.picked)
    is_end = np.zeros(vertices, np.bool_)
    is_end[one] = is_end[other] = True
    forth, back = is_end[sample.low], is_end[sample.high]
    end = np.concatenate([sample.low[forth], sample.high[back]]).astype(np.int64)
    keys = np.sort(end * vertices + np.concatenate([sample.high[forth], sample.low[back]]))
    start, stop = (np.searchsorted(keys, (one + np.int64(side)) * vertices) for side in (0, 1))
    pair = np.repeat(np.arange(len(one)), stop - start)
    pair_starts = order.offsets(stop - start)
    neighbour = keys[np.arange(len(pair)) + (start - pair_starts[:-1])[pair]] % vertices
    queries = other[pair] * np.int64(vertices) + neighbour
    found = np.searchsorted(keys, queries)
    found[found == len(keys)] = 0
    common: NDArray[np.int64] = pair[keys[found] == queries]
    return common
