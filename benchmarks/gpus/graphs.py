"""R-MAT graphs made on the device and cleaned there: what a partition, or a block of programs, gets from ingest."""

from __future__ import annotations

from typing import Any

import cupy
import numpy as np

from edgemill.kernels.in_rows import InRows
from edgemill.tasks.ingest import OwnedEdges
from edgemill.tasks.programs import Block

_SOURCE = r"""
extern "C" __global__ void rmat(long long* key, long long rows, int scale, unsigned long long seed) {
    long long stride = (long long)gridDim.x * blockDim.x;
    for (long long i = (long long)blockIdx.x * blockDim.x + threadIdx.x; i < rows; i += stride) {
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
        key[i] = u < v ? u << scale | v : v << scale | u;
    }
}
"""


def rmat_keys(scale: int, edge_factor: int = 16, seed: int = 1) -> Any:
    """R-MAT (0.57, 0.19, 0.19) without duplicates and loops: sorted keys u << scale | v with u < v."""
    rows = edge_factor << scale
    key = cupy.empty(rows, np.int64)
    cupy.RawKernel(_SOURCE, "rmat")((4096,), (256,), (key, np.int64(rows), np.int32(scale), np.uint64(seed)))
    key.sort()
    keep = key >> scale != key & ((1 << scale) - 1)
    keep[1:] &= key[1:] != key[:-1]
    return key[keep]


def rmat_block(scale: int, edge_factor: int = 16, seed: int = 1) -> Block:
    """The same graph with its isolated vertices as the only block of vertex programs, on the device."""
    one = rmat_keys(scale, edge_factor, seed)
    low = (1 << scale) - 1
    key = cupy.concatenate([one, (one & low) << scale | one >> scale])
    del one
    key.sort()
    number = cupy.arange(1 << scale, dtype=np.int32)
    offsets = cupy.searchsorted(key, cupy.arange((1 << scale) + 1, dtype=np.int64) << scale)
    rows = InRows(offsets, (key & low).astype(np.int32))
    return Block(0, 1 << scale, "both", number, rows, number, True, True)


def rmat(scale: int, edge_factor: int = 16, seed: int = 1) -> OwnedEdges:
    """The same graph in degree order, as the only partition's oriented edges."""
    key = rmat_keys(scale, edge_factor, seed)
    u, v = (key >> scale).astype(np.int32), (key & ((1 << scale) - 1)).astype(np.int32)
    del key
    degree = cupy.bincount(u, minlength=1 << scale) + cupy.bincount(v, minlength=1 << scale)
    ascending = cupy.argsort(degree)
    rank = cupy.empty(1 << scale, np.int32)
    alone = int((degree == 0).sum())
    rank[ascending] = cupy.arange(1 << scale, dtype=np.int32) - np.int32(alone)
    del ascending, degree
    u, v = rank[u], rank[v]
    key = cupy.minimum(u, v).astype(np.int64) << 32
    key |= cupy.maximum(u, v)
    del u, v
    key.sort()
    return oriented(key, (1 << scale) - alone)


def oriented(key: Any, vertices: int) -> OwnedEdges:
    """The only partition's edges from sorted keys low << 32 | high over vertices in degree order."""
    high = (key & 0xFFFFFFFF).astype(np.int32)
    offsets = cupy.searchsorted(key, cupy.arange(vertices + 1, dtype=np.int64) << 32)
    nothing = cupy.zeros(1, np.int16)
    everywhere = cupy.zeros(vertices, np.int16)
    return OwnedEdges(0, cupy.arange(vertices, dtype=np.int64), everywhere, offsets, high, nothing, nothing)
