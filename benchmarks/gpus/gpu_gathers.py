"""Ways to sum over rows on the GPU: a thread a row, a warp a row, a thread an entry, a sparse product, and ours.

    python -m benchmarks gpu_gathers --graphs rmat22,rmat24,star24,grid24 --repeats 5

The sums are of float64 values at the sources of each row, as PageRank needs them. *thread a row* and *warp a row* are
row-parallel, *thread an entry* adds each value to its row's sum atomically, with the row of each entry in memory, and
*warp's entries* adds values of one row within a warp first. *CuPy sparse* is the product of a `cupyx.scipy.sparse`
matrix of ones (cuSPARSE), which has 12 bytes an entry instead of 4; *classes* is `kernels.programs.row_sums`: rows by
length, lanes of a warp by class, long rows in parts. *same bits* says whether all repeats gave the same sums. What a
way keeps for a graph (classes, rows of entries, the matrix) is made before the time is taken. All sums are compared.

Graphs: `rmatN` is that of `gpu_programs`; `starN` has 2^N vertices, of which 16 are sources and targets of all;
`gridN` is a square grid of 2^N vertices with rows of up to four.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from statistics import median
from typing import Any

import cupy
import cupyx.scipy.sparse
import numpy as np

from benchmarks.common.graphs import WrongAnswer
from benchmarks.common.table import markdown, millions
from benchmarks.gpus.gpu_programs import bandwidth, timed
from benchmarks.gpus.graphs import rmat_block
from edgemill.kernels.graph import InRows
from edgemill.kernels.programs import row_sums

HEAD = ("graph", "entries, M", "longest row", "way", "time, ms", "over classes", "G entries/s", "same bits")
KEYS = ("graph", "way")
"""Columns that identify a row in the record."""
RECORDED = ("time, ms",)
"""Columns whose figures are recorded."""
HUBS = 16
"""Vertices of a star graph that all others are joined to."""
_SOURCE = r"""
extern "C" __global__ void thread_rows(const long long* offsets, const int* source, const double* value, double* sum,
                                       int rows) {
    const int row = blockIdx.x * blockDim.x + threadIdx.x;
    if (row >= rows) return;
    double own = 0;
    for (long long at = offsets[row]; at < offsets[row + 1]; ++at) own += value[source[at]];
    sum[row] = own;
}

__device__ double over_warp(double own) {
    for (int step = 16; step; step >>= 1) own += __shfl_down_sync(0xFFFFFFFF, own, step);
    return own;
}

extern "C" __global__ void warp_rows(const long long* offsets, const int* source, const double* value, double* sum,
                                     int rows) {
    const int row = (int)((blockIdx.x * (long long)blockDim.x + threadIdx.x) >> 5), lane = threadIdx.x & 31;
    if (row >= rows) return;
    double own = 0;
    for (long long at = offsets[row] + lane; at < offsets[row + 1]; at += 32) own += value[source[at]];
    own = over_warp(own);
    if (!lane) sum[row] = own;
}

extern "C" __global__ void entries(const int* target, const int* source, const double* value, double* sum,
                                   long long size) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (at < size) atomicAdd(&sum[target[at]], value[source[at]]);
}

// Each lane adds the values behind it that are of its row, so that the first lane of each row has their sum.
extern "C" __global__ void warp_entries(const int* target, const int* source, const double* value, double* sum,
                                        long long size) {
    const long long at = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    const int lane = threadIdx.x & 31, row = at < size ? target[at] : -1;
    double own = at < size ? value[source[at]] : 0;
    for (int step = 1; step < 32; step <<= 1) {
        const double other = __shfl_down_sync(0xFFFFFFFF, own, step);
        if (__shfl_down_sync(0xFFFFFFFF, row, step) == row && lane + step < 32) own += other;
    }
    const int before = __shfl_up_sync(0xFFFFFFFF, row, 1);
    if (row >= 0 && (!lane || before != row)) atomicAdd(&sum[row], own);
}
"""
_BLOCK = 256


def graph(name: str) -> InRows:
    """The rows of a graph by its name, on the device."""
    kind, scale = name.rstrip("0123456789"), int(name.lstrip("abcdefghijklmnopqrstuvwxyz"))
    if kind == "rmat":
        return rmat_block(scale).rows
    vertices = cupy.arange(1 << scale, dtype=np.int64)
    if kind == "star":
        one = [(vertices[HUBS:], cupy.full(len(vertices) - HUBS, hub, np.int64)) for hub in range(HUBS)]
    elif kind == "grid":
        side = 1 << scale // 2
        right, down = vertices[vertices % side != side - 1], vertices[:-side]
        one = [(right, right + 1), (down, down + side)]
    else:
        raise SystemExit(f"--graphs {name}: not rmatN, starN or gridN")
    key = cupy.concatenate([to << 32 | of for u, v in one for to, of in ((u, v), (v, u))])
    key.sort()
    offsets = cupy.searchsorted(key, cupy.arange(len(vertices) + 1, dtype=np.int64) << 32)
    return InRows(offsets, (key & 0xFFFFFFFF).astype(np.int32))


def ways(rows: InRows, value: Any) -> dict[str, Callable[[], Any]]:
    """The calls that sum `value` over the rows, by name."""
    module = cupy.RawModule(code=_SOURCE)
    count, size = rows.rows, len(rows)
    target = (cupy.searchsorted(rows.offsets, cupy.arange(size, dtype=np.int64), side="right") - 1).astype(np.int32)
    matrix = cupyx.scipy.sparse.csr_matrix(
        (cupy.ones(size), rows.source, rows.offsets.astype(np.int32)), shape=(count, len(value))
    )

    def own(name: str, threads: int, *arrays: Any) -> Callable[[], Any]:
        kernel = module.get_function(name)

        def call() -> Any:
            sums = cupy.zeros(count, np.float64)
            kernel((-(-threads // _BLOCK),), (_BLOCK,), (*arrays, value, sums, *last))
            return sums

        last = (np.int32(count),) if arrays[0] is rows.offsets else (np.int64(size),)
        return call

    return {
        "classes": lambda: row_sums(rows, value),
        "thread a row": own("thread_rows", count, rows.offsets, rows.source),
        "warp a row": own("warp_rows", 32 * count, rows.offsets, rows.source),
        "thread an entry": own("entries", size, target, rows.source),
        "warp's entries": own("warp_entries", size, target, rows.source),
        "CuPy sparse": lambda: matrix @ value,
    }


def measured(name: str, repeats: int) -> list[list[str]]:
    """The lines of one graph."""
    rows = graph(name)
    value = cupy.random.default_rng(1).random(rows.rows)
    longest = int(cupy.diff(rows.offsets).max())
    lines: list[list[str]] = []
    expected, first = row_sums(rows, value), 0.0
    for way, call in ways(rows, value).items():
        sums, times, same = call(), [], True
        for _ in range(repeats):
            seconds, again = timed(call)
            times.append(seconds)
            same &= bool((again == sums).all())
        time = median(times)
        first = first or time
        if not bool(cupy.allclose(sums, expected, rtol=1e-9, atol=0)):
            raise WrongAnswer(f"{name}: sums of {way} differ from those of classes")
        lines.append(
            [
                name,
                millions(len(rows)),
                f"{longest}",
                way,
                f"{1e3 * time:.2f}",
                f"{time / first:.2f}",
                f"{len(rows) / time / 1e9:.1f}",
                "yes" if same else "no",
            ]
        )
        print(markdown(HEAD, lines[-1:]).splitlines()[-1], flush=True)
    return lines


def add_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--graphs", default="rmat22,rmat24,star24,grid24", help="graphs (rmat22,rmat24,star24,grid24)")
    parser.add_argument("--repeats", type=int, default=5, help="passes (5)")


def report(options: argparse.Namespace) -> list[list[str]]:
    """Measure and print; returns the rows of the table."""
    name = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    print(f"{name}, CuPy {cupy.__version__}, copies at {bandwidth() / 1e9:.0f} GB/s", flush=True)
    lines: list[list[str]] = []
    for one in options.graphs.split(","):
        lines += measured(one, options.repeats)
        cupy.get_default_memory_pool().free_all_blocks()
    print(markdown(HEAD, lines))
    return lines
