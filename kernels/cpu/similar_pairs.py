"""The vertices that are most similar to each vertex by their neighbours, with the same bits for any number of threads.

The rows of a product of sparse matrices, one after the other (Gustavson, "Two fast algorithms for sparse matrices:
multiplication and permuted transposition", ACM TOMS 4(3), 1978), of each of which the k largest values are kept. A
thread has one sum for every vertex. For each neighbour x of its vertex it adds a share to the sums of the neighbours of
x. Shares are integers, so that sums do not depend on the order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numba import get_num_threads, prange
from numpy.typing import NDArray

from ..graph import InRows, IntArray, LongArray
from ..runtime.cache import cached_njit
from .arrays.intrinsics import fetch_add

Measure: TypeAlias = Literal["jaccard", "overlap_coefficient", "cosine", "adamic_adar"]
Floats: TypeAlias = NDArray[np.float64]

BLOCK = 16
"""Vertices that a thread takes at a time."""
DENSE = 16
"""All sums are looked at where the paths of two edges from a vertex are more than all vertices over this number."""
WIDTH = 1 << 16
"""Fewest vertices whose sums are made together then, so that they stay in a cache."""
MOST_RANGES = 64
"""Most ranges of vertices whose sums are made together."""
LINE = 64
"""Vertices whose sums are looked at together."""
CAUTION = 1 - 1e-9
"""Factor of a bound that rounding must not make too large."""
SUM_BITS = 62
"""Bits of the largest sum of shares."""
COSINE_BITS = 30
"""Bits of a weight over the norm of its vertex; a product has twice as many."""

_JACCARD, _OVERLAP, _COSINE, _SUM = range(4)
_CODES = {"jaccard": _JACCARD, "overlap_coefficient": _OVERLAP, "cosine": _COSINE, "adamic_adar": _SUM}


@dataclass(frozen=True)
class Neighbourhoods:
    """The neighbours of each vertex, by what they add to the similarity of two vertices."""

    offsets: LongArray
    """[vertices + 1] The row of a vertex is the entries offsets[v] … offsets[v + 1] - 1."""
    neighbour: IntArray
    """[entries] ascending in a row, distinct, and not the vertex itself."""
    of_row: Floats
    """[entries] the weight of an edge as the vertex of the row has it; empty without weights."""
    of_neighbour: Floats
    """[entries] the weight of an edge as the neighbour has it; empty without weights."""
    share: NDArray[np.int32] | LongArray
    """[vertices] what a common neighbour adds, without weights; 0 for one that is left out."""
    size: Floats
    """[vertices] the size of the neighbourhood: neighbours, or the sum of their weights, without those left out."""
    measure: int
    """How sums and sizes become a similarity."""
    unit: float
    """What 1 in a sum stands for."""
    left_out: NDArray[np.bool_]
    """[vertices] whether it is left out of all neighbourhoods."""

    def wedges(self, chosen: IntArray) -> LongArray:
        """[vertices] the number of paths of two edges from the `chosen` vertices over each vertex; 0 over one that is
        left out.
        """
        inside, count = np.zeros(len(self.size), np.bool_), np.zeros(len(self.size), np.int64)
        inside[chosen] = True
        _count_inside(self.offsets, self.neighbour, inside, count)
        return np.where(self.left_out, 0, count * (np.diff(self.offsets) - 1))

    def most_neighbours_for(self, wedges: LongArray, most: int) -> int:
        """The largest number of neighbours such that without the vertices with more there are at most `most` of the
        `wedges` [vertices].
        """
        by_degree = np.bincount(np.diff(self.offsets), wedges)
        return int(np.searchsorted(np.cumsum(by_degree), most, side="right")) - 1


@dataclass(frozen=True)
class Similar:
    """The most similar vertices of some vertices, in descending order of similarity, then ascending."""

    offsets: LongArray
    """[chosen + 1] The row of a vertex is the entries offsets[i] … offsets[i + 1] - 1."""
    vertex: IntArray
    """[entries]"""
    similarity: Floats
    """[entries]"""


@cached_njit(parallel=True)
def _count_inside(offsets, neighbour, inside, count):
    """The neighbours of each vertex that are `inside`."""
    for v in prange(count.size):
        for at in range(offsets[v], offsets[v + 1]):
            count[v] += inside[neighbour[at]]


@cached_njit(parallel=True)
def _count_distinct(offsets, neighbour, weight, kept):
    """The distinct neighbours of each vertex except itself, and with weights over edges of a weight above 0."""
    for v in prange(offsets.size - 1):
        found, before = 0, v
        for at in range(offsets[v], offsets[v + 1]):
            if neighbour[at] != v and (weight.size == 0 or weight[at] > 0) and (neighbour[at] != before or not found):
                found += 1
                before = neighbour[at]
        kept[v + 1] = found


@cached_njit(parallel=True)
def _merge(offsets, neighbour, weight, starts, to, summed):
    """Write the neighbours that `_count_distinct` counts, and the sums of the weights of their edges."""
    for v in prange(offsets.size - 1):
        end = starts[v]
        for at in range(offsets[v], offsets[v + 1]):
            if neighbour[at] == v or (weight.size > 0 and weight[at] <= 0):
                continue
            if end == starts[v] or to[end - 1] != neighbour[at]:
                to[end] = neighbour[at]
                if weight.size > 0:
                    summed[end] = weight[at]
                end += 1
            elif weight.size > 0:
                summed[end - 1] += weight[at]


@cached_njit(parallel=True)
def _norms(offsets, neighbour, weight, share, norm):
    """The Euclidean norm of the weights of each vertex. Squares are rounded to integers before they are added."""
    for v in prange(norm.size):
        top = 0.0
        for at in range(offsets[v], offsets[v + 1]):
            if share[neighbour[at]]:
                top = max(top, weight[at])
        scale, bits = 1.0, SUM_BITS
        while scale < offsets[v + 1] - offsets[v]:
            scale *= 2
            bits -= 1
        one, total = np.float64(np.int64(1) << np.int64(bits)), np.int64(0)
        for at in range(offsets[v], offsets[v + 1]):
            if share[neighbour[at]]:
                part = weight[at] / top
                total += np.int64(np.rint(part * part * one))
        norm[v] = np.sqrt(total / one) * top


@cached_njit(parallel=True)
def _divide(offsets, neighbour, weight, norm, of_row, of_neighbour):
    """The weights over the norms of the vertex of the row, and over those of the neighbour."""
    one = np.float64(np.int64(1) << np.int64(COSINE_BITS))
    for v in prange(norm.size):
        for at in range(offsets[v], offsets[v + 1]):
            if norm[v] > 0:
                of_row[at] = weight[at] / norm[v] * one
            if norm[neighbour[at]] > 0:
                of_neighbour[at] = weight[at] / norm[neighbour[at]] * one


@cached_njit(parallel=True)
def _sizes(offsets, neighbour, weight, share, size):
    """The number of neighbours of each vertex that are not left out, or the sum of their weights, which are whole."""
    for v in prange(size.size):
        total = np.int64(0)
        for at in range(offsets[v], offsets[v + 1]):
            if share[neighbour[at]]:
                total += np.int64(weight[at]) if weight.size > 0 else np.int64(1)
        size[v] = total


def neighbourhoods(rows: InRows, measure: Measure, most_neighbours: int | None) -> Neighbourhoods:
    """The neighbourhoods of rows that have each edge at both ends. Vertices with more than `most_neighbours` are left
    out of all of them; None leaves none out.

    Edges of weight 0 and loops are left out, and the weights of repeated edges added. Weights are rounded to SUM_BITS
    bits of their largest sum at a vertex; for `cosine` products of weights over norms to twice COSINE_BITS bits. Rows
    with weights are not for `adamic_adar`.
    """
    offsets, neighbour, weight = _merged(rows)
    degree = np.diff(offsets)
    counts = np.ones(len(degree), np.bool_) if most_neighbours is None else degree <= most_neighbours
    share, size = counts.astype(np.int32), np.zeros(len(degree))
    unit, code = 1.0, _CODES[measure]
    of_row = of_neighbour = weight
    if measure == "adamic_adar":
        added = np.where(counts & (degree > 1), 1 / np.log(np.maximum(degree, 2)), 0.0)
        exponent = SUM_BITS - int(np.frexp(added.max(initial=0) * degree.max(initial=0))[1])
        share, unit = np.rint(np.ldexp(added, exponent)).astype(np.int64), float(np.ldexp(1.0, -exponent))
    elif measure == "cosine" and len(weight):
        _norms(offsets, neighbour, weight, share, size)
        of_row, of_neighbour = np.zeros_like(weight), np.zeros_like(weight)
        _divide(offsets, neighbour, weight, size, of_row, of_neighbour)
        unit, code = float(np.ldexp(1.0, -2 * COSINE_BITS)), _SUM
    else:
        if len(weight):
            most = float(np.add.reduceat(weight, offsets[:-1][degree > 0]).max())
            of_row = of_neighbour = np.rint(np.ldexp(weight, SUM_BITS - int(np.frexp(most)[1])))
        _sizes(offsets, neighbour, of_row, share, size)
    return Neighbourhoods(offsets, neighbour, of_row, of_neighbour, share, size, code, unit, ~counts)


def _merged(rows: InRows) -> tuple[LongArray, IntArray, Floats]:
    """Offsets, neighbours and weights without loops and repeated edges; weights are empty if there are none."""
    weight = np.zeros(0) if rows.weight is None else rows.weight
    starts = np.zeros(len(rows.offsets), np.int64)
    _count_distinct(rows.offsets, rows.source, weight, starts)
    np.cumsum(starts, out=starts)
    if starts[-1] == len(rows):
        return rows.offsets, rows.source, weight
    to, summed = np.empty(starts[-1], np.int32), np.empty(starts[-1] if len(weight) else 0)
    _merge(rows.offsets, rows.source, weight, starts, to, summed)
    return starts, to, summed


@cached_njit
def _add(neighbour, start, stop, high, share, sums):
    """Add a share to the sums of some vertices, up to the first that is not below `high`. Returns where that is."""
    at = start
    while at < stop and neighbour[at] < high:
        sums[neighbour[at]] += share
        at += 1
    return at


@cached_njit
def _add_listed(neighbour, start, stop, share, sums, touched, found):
    """The same, and list the vertices whose sum was 0 in `touched`, which had `found` before. Returns their number."""
    for at in range(start, stop):
        u = neighbour[at]
        before = sums[u]
        sums[u] = before + share
        touched[found] = u  # without a branch, which would often be mispredicted
        found += before == 0
    return found


@cached_njit
def _add_weighted(neighbour, weight, start, stop, own, multiplies, sums, touched, found):
    """The same with the smaller of two weights as share, or with their product."""
    for at in range(start, stop):
        share = np.int64(np.rint(own * weight[at])) if multiplies else np.int64(min(own, weight[at]))
        if share > 0:
            u = neighbour[at]
            if sums[u] == 0:
                touched[found] = u
                found += 1
            sums[u] += share
    return found


@cached_njit
def _is_behind(one, of_one, other, of_other):
    """Whether a vertex with its similarity comes after another one."""
    return of_one < of_other or (of_one == of_other and one > other)


@cached_njit
def _sift(vertex, similarity, length):
    """Move the first vertex of a heap, whose first vertex comes last in the order, to its place."""
    at = 0
    while 2 * at + 1 < length:
        below = 2 * at + 1
        if below + 1 < length and _is_behind(
            vertex[below + 1], similarity[below + 1], vertex[below], similarity[below]
        ):
            below += 1
        if not _is_behind(vertex[below], similarity[below], vertex[at], similarity[at]):
            break
        vertex[at], vertex[below] = vertex[below], vertex[at]
        similarity[at], similarity[below] = similarity[below], similarity[at]
        at = below


@cached_njit
def _keep(vertex, similarity, length, u, value):
    """Put a vertex into a heap of some length, in place of the last one in the order if it is full. Returns the new
    length.
    """
    if length == vertex.size:
        if _is_behind(u, value, vertex[0], similarity[0]):
            return length
        vertex[0], similarity[0] = u, value
        _sift(vertex, similarity, length)
        return length
    at = length
    while at > 0 and _is_behind(u, value, vertex[(at - 1) // 2], similarity[(at - 1) // 2]):
        above = (at - 1) // 2
        vertex[at], similarity[at] = vertex[above], similarity[above]
        at = above
    vertex[at], similarity[at] = u, value
    return length + 1


@cached_njit
def _sort(vertex, similarity, length):
    """Bring a heap into the order."""
    for end in range(length - 1, 0, -1):
        vertex[0], vertex[end] = vertex[end], vertex[0]
        similarity[0], similarity[end] = similarity[end], similarity[0]
        _sift(vertex, similarity, end)


@cached_njit
def _may_reach(sums, size, measure, unit, own, least):
    """Whether one of some vertices may have a similarity of `least`. Looks at all of them, so that it is vectorised."""
    found = 0
    if measure == _JACCARD:
        factor = least / (1 + least) * CAUTION
        for i in range(sums.size):
            found += np.float64(sums[i]) >= max(0.5, factor * (own + size[i]))
    elif measure == _OVERLAP:
        factor = least * CAUTION
        for i in range(sums.size):
            found += np.float64(sums[i]) >= max(0.5, factor * min(own, size[i]))
    elif measure == _COSINE:
        factor = least * least * own * CAUTION
        for i in range(sums.size):
            found += np.float64(sums[i]) * np.float64(sums[i]) >= max(0.5, factor * size[i])
    else:
        factor = max(0.5, least / unit * CAUTION)
        for i in range(sums.size):
            found += np.float64(sums[i]) >= factor
    return found > 0


@cached_njit
def _offer(total, measure, unit, own, other, u, least, vertex, similarity, kept):
    """Keep a vertex with some sum and sizes if its similarity is at least `least`. Returns how many are kept."""
    if total == 0:
        return kept
    common = np.float64(total)
    if measure == _JACCARD:
        value = common / (own + other - common)
    elif measure == _OVERLAP:
        value = common / min(own, other)
    elif measure == _COSINE:
        value = common / np.sqrt(own * other)
    else:
        value = common * unit
    return _keep(vertex, similarity, kept, u, value) if value >= least else kept


@cached_njit(parallel=True)
def _find(
    offsets,
    neighbour,
    of_row,
    of_neighbour,
    share,
    size,
    measure,
    unit,
    chosen,
    minimum,
    next_block,
    width,
    sums,
    touched,
    cursor,
    vertex,
    similarity,
    count,
):
    """The most similar vertices of the `chosen` vertices, as many as rows of `vertex` and `similarity` have room for.

    `sums` are 0 before and after. Without weights, and over many paths, the sums of `width` vertices are made after
    those before, and all are looked at; else those are that were listed.
    """
    vertices = size.size
    for t in prange(sums.shape[0]):
        own_sums, own_touched, own_at = sums[t], touched[t], cursor[t]
        while True:
            first = fetch_add(next_block, 0, np.int64(1)) * BLOCK
            if first >= chosen.size:
                break
            for i in range(first, min(first + BLOCK, chosen.size)):
                v, found, work = chosen[i], np.int64(0), np.int64(0)
                best, of_best, kept, least = vertex[i], similarity[i], np.int64(0), minimum
                row = offsets[v]
                for at in range(row, offsets[v + 1]):
                    own_at[at - row] = offsets[neighbour[at]]
                    work += offsets[neighbour[at] + 1] - offsets[neighbour[at]]
                if of_row.size == 0 and DENSE * work > vertices:
                    for range_low in range(0, vertices, width):
                        range_high = min(range_low + width, vertices)
                        for at in range(row, offsets[v + 1]):
                            x = neighbour[at]
                            if share[x] != 0:
                                own_at[at - row] = _add(
                                    neighbour, own_at[at - row], offsets[x + 1], range_high, share[x], own_sums
                                )
                        own_sums[v] = 0
                        for low in range(range_low, range_high, LINE):
                            high = min(low + LINE, range_high)
                            if _may_reach(own_sums[low:high], size[low:high], measure, unit, size[v], least):
                                for u in range(low, high):
                                    kept = _offer(
                                        own_sums[u], measure, unit, size[v], size[u], u, least, best, of_best, kept
                                    )
                                    least = of_best[0] if kept == best.size else minimum
                        own_sums[range_low:range_high] = 0
                else:
                    for at in range(row, offsets[v + 1]):
                        x = neighbour[at]
                        start, stop = offsets[x], offsets[x + 1]
                        if share[x] == 0:
                            continue
                        if of_row.size == 0:
                            found = _add_listed(neighbour, start, stop, share[x], own_sums, own_touched, found)
                        else:
                            own, multiplies = of_row[at], measure == _SUM
                            found = _add_weighted(
                                neighbour, of_neighbour, start, stop, own, multiplies, own_sums, own_touched, found
                            )
                    own_sums[v] = 0
                    for j in range(found):
                        u = own_touched[j]
                        kept = _offer(own_sums[u], measure, unit, size[v], size[u], u, least, best, of_best, kept)
                        least = of_best[0] if kept == best.size else minimum
                        own_sums[u] = 0
                _sort(best, of_best, kept)
                count[i + 1] = kept


def most_similar(near: Neighbourhoods, chosen: IntArray, k: int, minimum: float) -> Similar:
    """The `k` most similar vertices of each of the `chosen`, or fewer, with a similarity of at least `minimum` and
    above 0; of equally similar ones those of smallest number.

    Takes 8 to 12 bytes a vertex in each thread, and 12 for each of `k` vertices of each chosen one.
    """
    threads, vertices = get_num_threads(), len(near.size)
    chosen = chosen.view()
    chosen.flags.writeable = False
    kind = np.int64 if len(near.of_row) else near.share.dtype
    sums, touched = np.zeros((threads, vertices), kind), np.empty((threads, vertices + 1), np.int32)
    vertex, similarity = np.empty((len(chosen), k), np.int32), np.empty((len(chosen), k))
    count = np.zeros(len(chosen) + 1, np.int64)
    rows = near.offsets, near.neighbour, near.of_row, near.of_neighbour, near.share, near.size
    how = near.measure, near.unit, chosen, minimum, np.zeros(1, np.int64), max(WIDTH, vertices // MOST_RANGES)
    cursor = np.empty((threads, int(np.diff(near.offsets).max(initial=0))), np.int64)
    _find(*rows, *how, sums, touched, cursor, vertex, similarity, count)
    filled = np.arange(k) < count[1:, None]
    return Similar(np.cumsum(count), vertex[filled], similarity[filled])


@cached_njit(parallel=True)
def _common(offsets, neighbour, share, one, other, found):
    """The sums of the shares of the common neighbours of pairs of vertices, by merging their rows."""
    for i in prange(one.size):
        at, end = offsets[one[i]], offsets[one[i] + 1]
        there, last = offsets[other[i]], offsets[other[i] + 1]
        total = 0.0
        while at < end and there < last:
            u, w = neighbour[at], neighbour[there]
            if u == w:
                total += share[u]
            at += u <= w
            there += w <= u
        found[i] = total


def common_neighbours(rows: InRows, share: Floats, one: IntArray, other: IntArray) -> Floats:
    """[pairs] the sum of the `share` [vertices] of the common neighbours of the vertices `one` and `other` [pairs].

    `rows` have each edge at both ends, once, without loops. Reads the rows of both vertices.
    """
    found = np.empty(len(one))
    _common(rows.offsets, rows.source, share, one, other, found)
    return found
