"""Graphs cleaned on the device: what a partition, or a block of programs, gets from ingest.

R-MAT graphs are made on the device. Real graphs are read from Parquet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import cupy
import numpy as np
import pyarrow.parquet as pq

from edgemill.kernels.gpu.streaming import PinnedArray
from edgemill.kernels.graph import InRows
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.programs import GraphBlock

_PART = 2**29
"""Rows that are cleaned at once."""
_SOURCE = r"""
struct Edge { long long u, v; };

__device__ Edge draw_edge(long long i, int scale, unsigned long long seed) {
    unsigned long long state = seed * 0x9E3779B97F4A7C15ull + (unsigned long long)i * 64;
    long long u = 0, v = 0;
    for (int level = 0; level < scale; ++level) {
        // SplitMix64 (Steele, Lea and Flood, OOPSLA 2014)
        unsigned long long z = (state + level) * 0x9E3779B97F4A7C15ull;
        z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
        z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
        float draw = (float)((z ^ (z >> 31)) >> 40) / 16777216.0f;
        int quadrant = draw < 0.57f ? 0 : draw < 0.76f ? 1 : draw < 0.95f ? 2 : 3;
        u = u << 1 | (quadrant >> 1);
        v = v << 1 | (quadrant & 1);
    }
    return Edge{u, v};
}

#define FOR_EACH_ROW(i)                                          \
    const long long stride = (long long)gridDim.x * blockDim.x; \
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += stride)

extern "C" __global__ void rmat(long long* key, long long rows, int scale, unsigned long long seed) {
    FOR_EACH_ROW(i) {
        const Edge edge = draw_edge(i, scale, seed);
        key[i] = edge.u < edge.v ? edge.u << scale | edge.v : edge.v << scale | edge.u;
    }
}

// The entries of every `step`-th row by their target >> shift.
extern "C" __global__ void rmat_counts(unsigned long long* counts, long long rows, long long step, int scale, int shift,
                                       unsigned long long seed) {
    FOR_EACH_ROW(i) {
        const Edge edge = draw_edge(i * step, scale, seed);
        atomicAdd(&counts[edge.u >> shift], 1ull);
        atomicAdd(&counts[edge.v >> shift], 1ull);
    }
}

// Both directions of each edge, as target << scale | source, if the target is in first .. last - 1; those that fit.
extern "C" __global__ void rmat_entries(long long* key, long long room, unsigned long long* size, long long rows,
                                        int scale, long long first, long long last, unsigned long long seed) {
    FOR_EACH_ROW(i) {
        const Edge edge = draw_edge(i, scale, seed);
        if (edge.u == edge.v) continue;
        for (int way = 0; way < 2; ++way) {
            const long long to = way ? edge.u : edge.v, from = way ? edge.v : edge.u;
            if (to < first || to >= last) continue;
            const unsigned same = __activemask();
            const int lane = threadIdx.x & 31, leader = __ffs(same) - 1;
            unsigned long long slot = 0;
            if (lane == leader) slot = atomicAdd(size, (unsigned long long)__popc(same));
            slot = __shfl_sync(same, slot, leader) + __popc(same & ((1u << lane) - 1));
            if (slot < room) key[slot] = to << scale | from;
        }
    }
}
"""
BINS = 4096
"""Ranges of targets that are counted in a sample."""
SAMPLED = 2**24
"""Rows of the sample, about."""
PART_ENTRIES = 2**30
"""Entries of a part, about: its keys, and as much scratch for sorting them."""


def rmat_keys(scale: int, edge_factor: int = 16, seed: int = 1) -> Any:
    """R-MAT (0.57, 0.19, 0.19) without duplicates and loops: sorted keys u << scale | v with u < v."""
    rows = edge_factor << scale
    key = cupy.empty(rows, np.int64)
    cupy.RawKernel(_SOURCE, "rmat")((4096,), (256,), (key, np.int64(rows), np.int32(scale), np.uint64(seed)))
    key.sort()
    # Distinct keys move to the front, part after part: CuPy selects from 2^31 items at most, and in memory of its own.
    kept, last = 0, -1
    for first in range(0, rows, _PART):
        part = key[first : first + _PART]
        keep = part >> scale != part & ((1 << scale) - 1)
        keep[1:] &= part[1:] != part[:-1]
        keep[:1] &= part[:1] != last
        last = int(part[-1])
        part = part[keep]
        key[kept : kept + len(part)] = part
        kept += len(part)
    return key[:kept]


def rmat_block(scale: int, edge_factor: int = 16, seed: int = 1) -> GraphBlock:
    """The same graph with its isolated vertices as the only block of vertex programs, on the device."""
    one = rmat_keys(scale, edge_factor, seed)
    low = (1 << scale) - 1
    key = cupy.concatenate([one, (one & low) << scale | one >> scale])
    del one
    key.sort()
    offsets = cupy.searchsorted(key, cupy.arange((1 << scale) + 1, dtype=np.int64) << scale)
    return block_of(offsets, InRows(offsets, (key & low).astype(np.int32)))


def rmat_parts(scale: int, edge_factor: int = 16, seed: int = 1) -> Iterator[tuple[int, int, Any]]:
    """The same graph in ranges of targets: (first, last + 1, sorted keys target << scale | source).

    Each part is generated, sorted and cleaned by itself, so a graph whose keys exceed the device's memory can be made.
    """
    rows, module = edge_factor << scale, cupy.RawModule(code=_SOURCE)
    shift, step = max(0, scale - 12), max(1, rows // SAMPLED)
    counts = cupy.zeros(BINS, np.uint64)
    shape = (4096,), (256,)
    sizes = np.int64(rows // step), np.int64(step), np.int32(scale), np.int32(shift), np.uint64(seed)
    module.get_function("rmat_counts")(*shape, (counts, *sizes))
    ends = step * np.concatenate(([0], np.cumsum(counts.get().astype(np.float64))))
    bins, first = (1 << scale) >> shift, 0
    while first < bins:
        last = int(np.searchsorted(ends, ends[first] + PART_ENTRIES, side="right")) - 1
        last = min(max(last, first + 1), bins)
        room = int(1.05 * (ends[last] - ends[first])) + 2**22
        key, size = cupy.empty(room, np.int64), cupy.zeros(1, np.uint64)
        limits = np.int64(rows), np.int32(scale), np.int64(first << shift), np.int64(last << shift), np.uint64(seed)
        module.get_function("rmat_entries")(*shape, (key, np.int64(room), size, *limits))
        found = int(size[0])
        if found > room:
            raise RuntimeError(f"{found:,} entries into vertices {first << shift:,} to {last << shift:,}, not {room:,}")
        key = key[:found]
        key.sort()
        keep = cupy.ones(found, np.bool_)
        keep[1:] = key[1:] != key[:-1]
        key = key[keep]
        del keep
        yield first << shift, last << shift, key
        first = last


def rmat_rows(scale: int, pinned: bool, edge_factor: int = 16, seed: int = 1) -> tuple[Any, Any]:
    """The rows of `rmat_block`: offsets int64 [vertices + 1] on the device, and the sources int32 [entries].

    The sources are on the device, or with `pinned` a PinnedArray. They are made in parts, see `rmat_parts`.
    """
    vertices, most = 1 << scale, 2 * edge_factor << scale
    kept = PinnedArray.empty(most, np.int32) if pinned else None
    source = None if pinned else cupy.empty(most, np.int32)
    offsets = cupy.zeros(vertices + 1, np.int64)
    entries, low = 0, vertices - 1
    for first, last, key in rmat_parts(scale, edge_factor, seed):
        starts = cupy.arange(first, last + 1, dtype=np.int64) << scale
        offsets[first : last + 1] = entries + cupy.searchsorted(key, starts)
        own = (key & low).astype(np.int32)
        if kept is not None:
            own.get(out=kept.host[entries : entries + len(own)])
        else:
            source[entries : entries + len(own)] = own
        entries += len(own)
        del key, own, starts
        cupy.get_default_memory_pool().free_all_blocks()
    if kept is not None:
        return offsets, PinnedArray(kept.host[:entries], kept.device[:entries])
    return offsets, source[:entries]


def block_of(offsets: Any, rows: InRows) -> GraphBlock:
    """The only block of a graph with these undirected rows."""
    number = cupy.arange(len(offsets) - 1, dtype=np.int32)
    return GraphBlock(0, len(number), "both", number, rows, number, True, True)


def rmat(scale: int, edge_factor: int = 16, seed: int = 1) -> OwnedEdges:
    """The same graph in degree order, as the only partition's oriented edges."""
    return _in_degree_order(lambda: rmat_keys(scale, edge_factor, seed), scale)


def real(path: Path) -> OwnedEdges:
    """The graph of a Parquet file with integer columns src and dst, in the same form."""
    rows = pq.read_table(path, columns=["src", "dst"])
    ends = cupy.concatenate([cupy.asarray(column.to_numpy()) for column in rows.columns])
    ids, number = cupy.unique(ends, return_inverse=True)
    u, v = number[: len(rows)], number[len(rows) :]
    scale = len(ids).bit_length()
    key = (cupy.minimum(u, v) << scale | cupy.maximum(u, v))[u != v]
    return _in_degree_order(lambda: cupy.unique(key), scale)


def _in_degree_order(make_keys: Callable[[], Any], scale: int) -> OwnedEdges:
    """A graph from distinct keys u << scale | v. They are made here, so that no caller keeps their memory."""
    key, vertices = make_keys(), 1 << scale
    u, v = (key >> scale).astype(np.int32), (key & (vertices - 1)).astype(np.int32)
    del key
    degree = cupy.bincount(u, minlength=vertices) + cupy.bincount(v, minlength=vertices)
    ascending = cupy.argsort(degree)
    rank = cupy.empty(vertices, np.int32)
    alone = int((degree == 0).sum())
    rank[ascending] = cupy.arange(vertices, dtype=np.int32) - np.int32(alone)
    del ascending, degree
    u, v = rank[u], rank[v]
    key = cupy.minimum(u, v).astype(np.int64) << 32
    key |= cupy.maximum(u, v)
    del u, v
    key.sort()
    return oriented(key, vertices - alone)


def oriented(key: Any, vertices: int) -> OwnedEdges:
    """The only partition's edges from sorted keys low << 32 | high over vertices in degree order."""
    high = (key & 0xFFFFFFFF).astype(np.int32)
    offsets = cupy.searchsorted(key, cupy.arange(vertices + 1, dtype=np.int64) << 32)
    nothing = cupy.zeros(1, np.int16)
    return OwnedEdges(cupy.arange(vertices, dtype=np.int64), offsets, high, nothing, nothing)
