// Building the rows of a subgraph, or of those of its edges that are left.
//
// measure_rows  one thread an edge: reads two endpoints (8 bytes), adds one to the length of two rows.
// fill_rows     one thread an edge: reads two endpoints, writes two entries (16 bytes), two slots (8 bytes) and two filter
//               bits, each in a row of its own. Entries of one low endpoint come from neighbouring threads, which ask for
//               room together.
//
// `edges` names the edges; a null pointer means all of 0 .. count - 1.
#include "rows.cuh"

__device__ __forceinline__ int room_together(int* used, int vertex, bool active) {
    uint32 lanes = __ballot_sync(ALL_LANES, active);
    if (!active) return 0;
    uint32 peers = __match_any_sync(lanes, vertex);
    int lane = threadIdx.x & 31, leader = __ffs(peers) - 1, base = 0;
    if (lane == leader) base = atomicAdd(&used[vertex], __popc(peers));
    base = __shfl_sync(peers, base, leader);
    return base + __popc(peers & ((1u << lane) - 1));
}

extern "C" __global__ void measure_rows(
    const int* __restrict__ edges, int64 count, const int* __restrict__ low, const int* __restrict__ high, int* length) {
    int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < count; i += stride) {
        int64 own = i + (threadIdx.x & 31);
        bool active = own < count;
        int e = active ? (edges ? edges[own] : static_cast<int>(own)) : 0;
        room_together(length, active ? low[e] : 0, active);
        if (active) atomicAdd(&length[high[e]], 1);
    }
}

__device__ __forceinline__ void put(
    int vertex, int place, int neighbour, int edge, const int64* __restrict__ begin, const int64* __restrict__ bucket,
    int2* entry, uint32* slot, uint32* filter) {
    Row row = row_of(begin, bucket, vertex);
    entry[row.begin + place] = make_int2(neighbour, edge);
    if (row.buckets == 0) return;
    uint32 hash = scramble(neighbour);
    uint32 value = hash << place_bits(row.length) | static_cast<uint32>(place);
    uint32 at = __umulhi(hash, row.buckets);
    const int64 home = row.bucket + at;
    atomicOr(&filter[home >> 1], 1u << (filter_bit(hash) + 16 * (home & 1)));
    while (true) {
        uint32* slots = slot + 4 * (row.bucket + at);
        for (int s = 0; s < 4; ++s) {
            if (atomicCAS(&slots[s], EMPTY, value) == EMPTY) return;
        }
        at = at + 1 == row.buckets ? 0 : at + 1;
    }
}

extern "C" __global__ void fill_rows(
    const int* __restrict__ edges, int64 count, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int64* __restrict__ bucket, int* used, int2* entry, uint32* slot, uint32* filter) {
    int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < count; i += stride) {
        int64 own = i + (threadIdx.x & 31);
        bool active = own < count;
        int e = active ? (edges ? edges[own] : static_cast<int>(own)) : 0;
        int u = active ? low[e] : 0, v = active ? high[e] : 0;
        int place = room_together(used, u, active);
        if (!active) continue;
        put(u, place, v, e, begin, bucket, entry, slot, filter);
        put(v, atomicAdd(&used[v], 1), u, e, begin, bucket, entry, slot, filter);
    }
}
