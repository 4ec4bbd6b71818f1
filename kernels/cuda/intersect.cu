// Finds each triangle a < b < c once, from the lists of a range of vertices a; see kernels.supports. For each entry (a,
// b) one of two sets is stored in a hash table in shared memory, and the members of the other set are looked up in it:
//
//   side 0  table of the list of a; looks up N+(b)                                 one table for each list
//   side 1  table of N+(b); looks up the part of the list of a after b             one table for each b
//
// tally      One thread an entry: counts the entries of each b in lists of the share.
// choose     One thread an entry: chooses the side with less work, which is the lookups plus the entry's share of
//            building the table. Marks the lists that need a table, and counts the entries of each b on side 1.
// group      One thread an entry: groups the entries of side 1 by b.
// intersect  A team builds a table (tables.cuh), and each of its warps looks up one set at a time. A member takes 4 bytes, read
//            coalesced, and one or two words of shared memory; a triangle takes one atomic in shared and one in global memory.
//
// Needs      Outputs are 0 at the start and are added to.
// Source     The forward algorithm (Schank and Wagner, WEA 2005). Choosing sides divides the number of lookups by 3.
#include "tables.cuh"

// The share of the lists that is counted.
struct Share {
    int first;  // vertex of list 0
    int own;
    int all;

    __device__ __forceinline__ bool has(int list) const {
        return static_cast<uint32>(first + list) % all == own;
    }
};

extern "C" __global__ void tally(
    const int* __restrict__ members, int64 entries, const int* __restrict__ list, int first, int own, int all, int* used) {
    const Share share = {first, own, all};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += stride) {
        if (share.has(list[i])) atomicAdd(&used[members[i]], 1);
    }
}

extern "C" __global__ void choose(
    const int* __restrict__ members, int64 entries, const int* __restrict__ list, const int64* __restrict__ starts,
    const int64* __restrict__ offsets, const int* __restrict__ used, int first, int own, int all, signed char* side, bool* table,
    int* grouped) {
    const Share share = {first, own, all};
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += stride) {
        const int b = members[i], a = list[i];
        const int64 after = starts[a + 1] - i - 1;
        signed char chosen = -1;
        if (after > 0 && share.has(a)) {
            const int64 row = offsets[b + 1] - offsets[b];
            if (row > 0) {
                chosen = after + BUILDING * row / used[b] < row;
                if (chosen) {
                    atomicAdd(&grouped[b], 1);
                } else {
                    table[a] = true;
                }
            }
        }
        side[i] = chosen;
    }
}

extern "C" __global__ void group(
    const uint32* __restrict__ members, int64 entries, const signed char* __restrict__ side, unsigned long long* next,
    int64* entry) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += stride) {
        if (side[i] == 1) entry[atomicAdd(&next[members[i]], 1ull)] = i;
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) intersect(
    const int* __restrict__ tables, const int* __restrict__ parts, int count, unsigned long long* cursor,
    const int* __restrict__ list,
    const int64* __restrict__ starts, const uint32* __restrict__ members, const int64* __restrict__ offsets,
    const uint32* __restrict__ high, const signed char* __restrict__ side,
    const int64* __restrict__ group_starts, const int64* __restrict__ entry, int* support, int* gain) {
    extern __shared__ uint32 shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int thread = ONE_WARP ? lane : threadIdx.x;  // within the team
    const int first_of_warp = ONE_WARP ? 0 : warp, step = ONE_WARP ? 1 : WARPS;
    Table table;
    table.key = shared + (ONE_WARP ? warp * 2 * SLOTS : 0);
    table.hits = reinterpret_cast<int*>(table.key + SLOTS);
    const uint32* in_table = SIDE ? high : members;
    const uint32* streamed = SIDE ? members : high;
    int* table_hits = SIDE ? support : gain;
    int* stream_hits = SIDE ? gain : support;
    while (true) {
        const int turn = next_turn(cursor);
        if (turn >= count) break;
        const int x = tables[count - 1 - turn];  // the largest tables are last in the list and are processed first
        const int64 begin = SIDE ? offsets[x] : starts[x], end = SIDE ? offsets[x + 1] : starts[x + 1];
        const int64 from = (SIDE ? group_starts[x] : begin) + static_cast<int64>(parts[count - 1 - turn]) * PART;
        const int64 to = min(SIDE ? group_starts[x + 1] : end, from + PART);
        for (int64 first = begin; first < end; first += MEMBERS) {
            const int size = static_cast<int>(min(end - first, static_cast<int64>(MEMBERS)));
            table.fill(in_table + first, size, thread);
            for (int64 q = from + first_of_warp; q < to; q += step) {
                int64 i, row, stop;
                if (SIDE) {
                    i = entry[q];
                    row = i + 1;
                    stop = starts[list[i] + 1];
                } else {
                    i = q;
                    if (side[i] != 0) continue;
                    row = offsets[members[i]];
                    stop = offsets[members[i] + 1];
                }
                const int found = warp_sum(table.stream(streamed, row, stop, lane, stream_hits));
                if (lane == 0 && found) atomicAdd(&gain[i], found);
            }
            table.flush(in_table + first, size, thread, table_hits + first);
        }
    }
}
