// Builds the rows of a subgraph, or of its remaining edges.
//
// number_rows   One thread an entry of a CSR: writes the entry's row. A warp's binary searches read the same words.
// measure_rows  One thread an edge: reads two endpoints (8 bytes) and adds one to the lengths of two rows.
// fill_rows     One thread an edge: reads two endpoints and writes an entry, a slot of the table (16 bytes together) and a filter
//               bit in each of two rows. Adjacent threads have entries of the same low endpoint and reserve slots together.
// trim_rows     One warp a row: removes the entries of removed edges and keeps the order of the others. Reads each entry and its
//               edge's count, and writes the entries that stay. Does not change the tables.
//
// `edges` names the edges; a null pointer means all of 0 .. count - 1.
#include "rows.cuh"

__device__ __forceinline__ int reserve_slots(int* used, int vertex, bool active) {
    uint32 lanes = __ballot_sync(ALL_LANES, active);
    if (!active) return 0;
    uint32 peers = __match_any_sync(lanes, vertex);
    int lane = threadIdx.x & 31, leader = __ffs(peers) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&used[vertex], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    return base + __popc(peers & ((1u << lane) - 1));
}

extern "C" __global__ void number_rows(const int64* __restrict__ offsets, int64 rows, int64 entries, int* number) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += stride) {
        number[i] = static_cast<int>(row_containing(offsets, rows, i));
    }
}

extern "C" __global__ void measure_rows(
    const int* __restrict__ edges, int64 count, const int* __restrict__ low, const int* __restrict__ high, int* length) {
    int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < count; i += stride) {
        int64 own = i + (threadIdx.x & 31);
        bool active = own < count;
        int e = active ? (edges ? edges[own] : static_cast<int>(own)) : 0;
        reserve_slots(length, active ? low[e] : 0, active);
        if (active) atomicAdd(&length[high[e]], 1);
    }
}

__device__ __forceinline__ void insert(
    int vertex, int slot, int neighbour, int edge, const int64* __restrict__ begin, const int* __restrict__ length,
    const int64* __restrict__ bucket, int2* entry, Bucket* table, uint32* filter) {
    Row row = row_of(begin, length, bucket, vertex);
    entry[row.begin + slot] = make_int2(neighbour, edge);
    if (row.buckets == 0) return;
    uint32 at = home_of(neighbour, row.buckets);
    const int64 home = row.bucket + at;
    atomicOr(&filter[home >> 1], 1u << (filter_bit(neighbour) + 16 * (home & 1)));
    while (true) {
        uint32* neighbours = &table[row.bucket + at].neighbour.x;
        uint32* edges = &table[row.bucket + at].edge.x;
        for (int s = 0; s < 4; ++s) {
            if (atomicCAS(&neighbours[s], EMPTY, static_cast<uint32>(neighbour)) != EMPTY) continue;
            edges[s] = edge;
            return;
        }
        at = at + 1 == row.buckets ? 0 : at + 1;
    }
}

extern "C" __global__ void fill_rows(
    const int* __restrict__ edges, int64 count, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket, int* used, int2* entry,
    Bucket* table, uint32* filter) {
    int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < count; i += stride) {
        int64 own = i + (threadIdx.x & 31);
        bool active = own < count;
        int e = active ? (edges ? edges[own] : static_cast<int>(own)) : 0;
        int u = active ? low[e] : 0, v = active ? high[e] : 0;
        int slot = reserve_slots(used, u, active);
        if (!active) continue;
        insert(u, slot, v, e, begin, length, bucket, entry, table, filter);
        insert(v, atomicAdd(&used[v], 1), u, e, begin, length, bucket, entry, table, filter);
    }
}

extern "C" __global__ void trim_rows(
    const int64* __restrict__ begin, int* length, int vertices, const int* __restrict__ count, int2* entry) {
    constexpr int ENTRIES = 2;  // entries that a lane loads at once
    const int lane = threadIdx.x & 31, warps = (gridDim.x * blockDim.x) >> 5;
    for (int v = (blockIdx.x * blockDim.x + threadIdx.x) >> 5; v < vertices; v += warps) {
        const int size = length[v];
        int2* row = entry + begin[v];
        int kept = 0;
        for (int j = lane; j - lane < size; j += 32 * ENTRIES) {
            int2 mine[ENTRIES];
            bool stays[ENTRIES];
#pragma unroll
            for (int k = 0; k < ENTRIES; ++k) mine[k] = j + 32 * k < size ? row[j + 32 * k] : make_int2(-1, -1);
#pragma unroll
            for (int k = 0; k < ENTRIES; ++k) stays[k] = mine[k].x >= 0 && count[mine[k].y] >= 0;
#pragma unroll
            for (int k = 0; k < ENTRIES; ++k) {
                const uint32 lanes = __ballot_sync(ALL_LANES, stays[k]);
                if (stays[k]) row[kept + __popc(lanes & ((1u << lane) - 1))] = mine[k];
                kept += __popc(lanes);
            }
        }
        if (lane == 0) length[v] = kept;
    }
}
