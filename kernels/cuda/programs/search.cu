// Breadth-first search from the side of the targets: a vertex is reached if one of its sources was reached in the superstep before.
//
// mark_level  Sets the bits of the vertices of a level.
// pull        One thread a row: reads up to TRIED entries. Rows with more entries, none of them active, are put on a list.
// pull_rest   One warp for each row on the list: reads 32 AHEAD entries at a time up to the first active source.
//
// `pull` and `pull_rest` write the level, the parent and the bit in `fresh` of each vertex that they reach. They add to
// `sums` the number of these vertices, the number of their entries in the rows of sources, and in the rows of targets.
#include "frontiers/lists.cuh"

constexpr int TRIED = 64;
constexpr int AHEAD = 4;

__device__ __forceinline__ bool is_set(const uint32* bits, int vertex) { return bits[vertex >> 5] >> (vertex & 31) & 1; }

__device__ __forceinline__ void add_all(int64 value, unsigned long long* sum) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    if (value && (threadIdx.x & 31) == 0) atomicAdd(sum, static_cast<unsigned long long>(value));
}

extern "C" __global__ void mark_level(const int* __restrict__ level, int64 count, int step, uint32* bits) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 base = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); base < count; base += stride) {
        const int64 v = base + (threadIdx.x & 31);
        const uint32 word = __ballot_sync(ALL_LANES, v < count && level[v] == step);
        if ((threadIdx.x & 31) == 0) bits[base >> 5] = word;
    }
}

extern "C" __global__ void pull(const int64* __restrict__ offsets, const int64* __restrict__ out_offsets, int64 count,
                                const int* __restrict__ source, const uint32* __restrict__ active, int step, int* level, int* parent,
                                uint32* fresh, int* rest, uint32* left, unsigned long long* sums) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    int64 reached = 0, in = 0, out = 0;
    for (int64 base = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); base < count; base += stride) {
        const int64 row = base + (threadIdx.x & 31);
        bool more = false;
        int found = -1;
        if (row < count && level[row] < 0) {
            const int64 first = offsets[row], end = offsets[row + 1];
            const int64 stop = first + TRIED < end ? first + TRIED : end;
            for (int64 q = first; q < stop && found < 0; ++q) {
                const int from = source[q];
                if (is_set(active, from)) found = from;
            }
            more = found < 0 && stop < end;
            if (found >= 0) {
                level[row] = step;
                parent[row] = found;
                ++reached;
                in += end - first;
                out += out_offsets[row + 1] - out_offsets[row];
            }
        }
        const uint32 word = __ballot_sync(ALL_LANES, found >= 0);
        if ((threadIdx.x & 31) == 0) fresh[base >> 5] = word;
        append(rest, left, more, static_cast<int>(row));
    }
    add_all(reached, sums);
    add_all(in, sums + 1);
    add_all(out, sums + 2);
}

extern "C" __global__ void pull_rest(const int64* __restrict__ offsets, const int64* __restrict__ out_offsets,
                                     const int* __restrict__ source, const uint32* __restrict__ active, int step, int* level,
                                     int* parent, uint32* fresh, const int* __restrict__ rest, const uint32* __restrict__ left,
                                     unsigned long long* sums) {
    const int lane = threadIdx.x & 31;
    const int64 warps = static_cast<int64>(gridDim.x) * (blockDim.x >> 5), size = *left;
    int64 reached = 0, in = 0, out = 0;
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
                const uint32 lanes = __ballot_sync(ALL_LANES, from[k] >= 0 && is_set(active, from[k]));
                const int first = __shfl_sync(ALL_LANES, from[k], lanes ? __ffs(lanes) - 1 : 0);
                if (found < 0 && lanes) found = first;
            }
        }
        if (lane == 0 && found >= 0) {
            level[row] = step;
            parent[row] = found;
            atomicOr(&fresh[row >> 5], 1u << (row & 31));
            ++reached;
            in += end - offsets[row];
            out += out_offsets[row + 1] - out_offsets[row];
        }
    }
    add_all(reached, sums);
    add_all(in, sums + 1);
    add_all(out, sums + 2);
}
