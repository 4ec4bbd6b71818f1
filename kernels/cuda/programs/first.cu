// The first source of each receiving row that is active, or -1.
//
// try_rows   One thread a row: reads up to TRIED entries. Rows with more entries, none of them active, are put on a list.
// read_rows  One warp for each row on the list: reads 32 AHEAD entries at a time up to the first active source.
#include "frontiers/lists.cuh"

constexpr int TRIED = 64;
constexpr int AHEAD = 4;

// The number of entries of each of the rows `selected`.
extern "C" __global__ void row_lengths(const int64* __restrict__ offsets, const int* __restrict__ selected, int64 count, int64* lengths) {
    const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += step)
        lengths[i] = offsets[selected[i] + 1] - offsets[selected[i]];
}

extern "C" __global__ void try_rows(const int64* __restrict__ offsets, int64 count, const bool* __restrict__ receiving,
                                    const int* __restrict__ source, const bool* __restrict__ active, int* best, int* rest,
                                    uint32* left) {
    const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 base = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); base < count; base += step) {
        const int64 row = base + (threadIdx.x & 31);
        bool more = false;
        if (row < count) {
            int found = -1;
            if (!receiving || receiving[row]) {
                const int64 first = offsets[row], end = offsets[row + 1];
                const int64 stop = first + TRIED < end ? first + TRIED : end;
                for (int64 q = first; q < stop && found < 0; ++q) {
                    const int from = source[q];
                    if (active[from]) found = from;
                }
                more = found < 0 && stop < end;
            }
            best[row] = found;
        }
        append(rest, left, more, static_cast<int>(row));
    }
}

extern "C" __global__ void read_rows(const int64* __restrict__ offsets, const int* __restrict__ source,
                                     const bool* __restrict__ active, int* best, const int* __restrict__ rest,
                                     const uint32* __restrict__ left) {
    const int lane = threadIdx.x & 31;
    const int64 warps = static_cast<int64>(gridDim.x) * (blockDim.x >> 5), size = *left;
    for (int64 at = static_cast<int64>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5); at < size; at += warps) {
        const int row = rest[at];
        const int64 end = offsets[row + 1];
        int found = -1;
        for (int64 q = offsets[row] + TRIED; q < end && found < 0; q += 32 * AHEAD) {
            int from[AHEAD];
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) from[k] = q + 32 * k + lane < end ? source[q + 32 * k + lane] : -1;
#pragma unroll
            for (int k = 0; k < AHEAD; ++k) {
                const uint32 lanes = __ballot_sync(ALL_LANES, from[k] >= 0 && active[from[k]]);
                const int first = __shfl_sync(ALL_LANES, from[k], lanes ? __ffs(lanes) - 1 : 0);
                if (found < 0 && lanes) found = first;
            }
        }
        if (lane == 0) best[row] = found;
    }
}
