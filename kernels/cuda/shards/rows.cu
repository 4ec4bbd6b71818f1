// Builds the rows of a shard, or of its remaining edges.
//
// measure_parts  One thread an edge: reads two endpoints (8 bytes) and adds one to the length of one row or of two.
// locate_parts   One thread a vertex: computes the start of its row from prefix sums, and its number of buckets.
// fill_parts     One thread an edge: writes, for each end in the own class, an entry (8 bytes), a slot of the table and a filter
//                bit. Adjacent threads have entries of the same low endpoint and reserve slots together.
// trim_parts     One warp for 32 rows: a lane processes each short row, all lanes together process each long row.
//                Removes the entries of removed edges.
// split_counts   One thread an edge: splits its support into halves, and adds up the supports of the edges whose high end is in
//                the class.
// mark_owned     One thread an edge: whether its high end is in the class.
#include "shards/count.cuh"
#include "shards/rows.cuh"

// Reserves slots in the row of `vertex` for the lanes with the same vertex, with one atomic.
__device__ __forceinline__ uint32 reserve_slots(uint32* used, uint32 vertex, bool active) {
    const uint32 lanes = __ballot_sync(ALL_LANES, active);
    if (!active) return 0;
    const uint32 peers = __match_any_sync(lanes, vertex);
    const int lane = threadIdx.x & 31, leader = __ffs(peers) - 1;
    uint32 base = 0;
    if (lane == leader) base = atomicAdd(used, static_cast<uint32>(__popc(peers)));
    return __shfl_sync(peers, base, leader) + __popc(peers & ((1u << lane) - 1));
}

// Adds the number of lanes with the same vertex to `used`, with one atomic.
__device__ __forceinline__ void count_together(uint32* used, uint32 vertex, bool active) {
    const uint32 lanes = __ballot_sync(ALL_LANES, active);
    if (!active) return;
    const uint32 peers = __match_any_sync(lanes, vertex);
    if ((threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(used, static_cast<uint32>(__popc(peers)));
}

extern "C" __global__ void measure_parts(
    uint32 vertices, uint32 shards, uint32 own, int64 edges, const uint32* __restrict__ low, const uint32* __restrict__ high, uint32* length) {
    const Cut cut = {vertices, shards, own};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < edges; i += stride) {
        const int64 e = i + (threadIdx.x & 31);
        const bool active = e < edges;
        const uint32 u = active ? low[e] : 0, v = active ? high[e] : 0;
        const bool to_high = active && class_of(cut, v) == cut.own;
        count_together(&length[u], u, to_high);
        if (active && class_of(cut, u) == cut.own) atomicAdd(&length[v], 1u);
    }
}

extern "C" __global__ void locate_parts(
    int64 vertices, const uint32* __restrict__ length, const int64* __restrict__ long_stop, const int64* __restrict__ short_stop,
    int64 short_begin, uint4* row) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 v = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; v < vertices; v += stride) {
        const uint32 size = length[v];
        if (size > SHORT_PART) {
            const uint32 room = (size + 7) & ~7u;
            row[v] = make_uint4(static_cast<uint32>(long_stop[v]) - room, 0, room >> 1, 0);
        } else {
            row[v] = make_uint4(static_cast<uint32>(short_begin + short_stop[v]) - size, 0, 0, 0);
        }
    }
}

__device__ __forceinline__ void insert(const uint4& row, uint32 slot, uint32 number, int edge, int2* entry, Bucket* table, uint32* filter) {
    const int neighbour = static_cast<int>(number);
    entry[row.x + slot] = make_int2(neighbour, edge);
    if (row.z == 0) return;
    uint32 at = home_of(neighbour, row.z);
    const int64 first = row.x >> 1, home = first + at;
    atomicOr(&filter[home >> 1], 1u << (filter_bit(neighbour) + 16 * (home & 1)));
    while (true) {
        uint32* neighbours = &table[first + at].neighbour.x;
        uint32* edges = &table[first + at].edge.x;
        for (int s = 0; s < 4; ++s) {
            if (atomicCAS(&neighbours[s], EMPTY, number) != EMPTY) continue;
            edges[s] = edge;
            return;
        }
        at = at + 1 == row.z ? 0 : at + 1;
    }
}

extern "C" __global__ void fill_parts(
    uint32 vertices, uint32 shards, uint32 own, int64 edges, const uint32* __restrict__ low, const uint32* __restrict__ high, uint4* row, int2* entry, Bucket* table,
    uint32* filter) {
    const Cut cut = {vertices, shards, own};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); i < edges; i += stride) {
        const int64 e = i + (threadIdx.x & 31);
        const bool active = e < edges;
        const uint32 u = active ? low[e] : 0, v = active ? high[e] : 0;
        const bool to_high = active && class_of(cut, v) == cut.own;
        const uint32 slot = reserve_slots(&row[u].y, u, to_high);
        if (to_high) insert(row[u], slot, number_of(cut, v), static_cast<int>(e), entry, table, filter);
        if (active && class_of(cut, u) == cut.own) {
            insert(row[v], atomicAdd(&row[v].y, 1u), number_of(cut, u), static_cast<int>(e), entry, table, filter);
        }
    }
}

extern "C" __global__ void trim_parts(int64 vertices, const int* __restrict__ count, uint4* rows, int2* entry) {
    constexpr int ENTRIES = 4;  // entries that a lane loads at once
    const int lane = threadIdx.x & 31;
    // The longest rows are those of the last vertices: this order spreads them over the warps.
    const int64 warps = (static_cast<int64>(gridDim.x) * blockDim.x) >> 5;
    for (int64 first = (static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x) >> 5; first < vertices; first += 32 * warps) {
        const int64 own = first + lane * warps;
        const uint4 mine = own < vertices ? rows[own] : make_uint4(0, 0, 0, 0);
        if (mine.y <= SHORT_PART) {
            uint32 kept = 0;
            for (uint32 j = 0; j < mine.y; ++j) {
                const int2 one = entry[mine.x + j];
                if (remains(count[one.y])) entry[mine.x + kept++] = one;
            }
            if (kept < mine.y) rows[own].y = kept;
        }
        for (uint32 lanes = __ballot_sync(ALL_LANES, mine.y > SHORT_PART); lanes; lanes &= lanes - 1) {
            const int whose = __ffs(lanes) - 1;
            const uint32 begin = __shfl_sync(ALL_LANES, mine.x, whose), size = __shfl_sync(ALL_LANES, mine.y, whose);
            uint32 kept = 0;
            for (uint32 j = lane; j - lane < size; j += 32 * ENTRIES) {
                int2 some[ENTRIES];
                bool stays[ENTRIES];
#pragma unroll
                for (int k = 0; k < ENTRIES; ++k) some[k] = j + 32 * k < size ? entry[begin + j + 32 * k] : make_int2(0, -1);
#pragma unroll
                for (int k = 0; k < ENTRIES; ++k) stays[k] = some[k].y >= 0 && remains(count[some[k].y]);
#pragma unroll
                for (int k = 0; k < ENTRIES; ++k) {
                    const uint32 staying = __ballot_sync(ALL_LANES, stays[k]);
                    if (stays[k]) entry[begin + kept + __popc(staying & ((1u << lane) - 1))] = some[k];
                    kept += __popc(staying);
                }
            }
            if (lane == 0) rows[first + whose * warps].y = kept;
        }
    }
}

extern "C" __global__ void split_counts(
    uint32 vertices, uint32 shards, uint32 own, int64 edges, const uint32* __restrict__ low, const uint32* __restrict__ high, const int* __restrict__ support,
    int* count, unsigned long long* supports) {
    const Cut cut = {vertices, shards, own};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    unsigned long long sum = 0;
    for (int64 e = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; e < edges; e += stride) {
        const int all = support[e], half = all >> 1;
        const bool at_low = class_of(cut, low[e]) == cut.own, at_high = class_of(cut, high[e]) == cut.own;
        if (at_high) sum += all;
        count[e] = at_low && at_high ? counted(OWN, all) : counted(SPLIT, at_high ? all - half : half);
    }
    if (sum) atomicAdd(supports, sum);
}

extern "C" __global__ void mark_owned(
    uint32 vertices, uint32 shards, uint32 own, int64 edges, const uint32* __restrict__ high, bool* owned) {
    const Cut cut = {vertices, shards, own};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 e = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; e < edges; e += stride) {
        owned[e] = class_of(cut, high[e]) == cut.own;
    }
}
