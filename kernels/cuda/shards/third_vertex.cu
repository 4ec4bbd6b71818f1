// Finds every triangle a < b < c of streamed edges (a, b) in which c is of the group's classes; see
// kernels.count_by_third_vertex. N(v) is the row of v in this group: its neighbours of these classes with a higher rank. For
// each edge one of two sets is stored in a hash table in shared memory, and the other set is looked up in it:
//
//   side 0  table of N(a), lookups of N(b)                              one table for each list
//   side 1  table of N(b), lookups of the members after b in N(a)       one table for each b
//
// choose        One thread an edge: chooses the side with less work, which is the lookups plus the edge's share of
//               building the table. Marks lists that need a table, and counts the edges of each b on side 1
//               (intersect:group groups these edges).
// third_vertex  A team builds a table (tables.cuh), and each of its warps looks up one set at a time. A member takes 4
//               bytes, read coalesced, and one or two words of shared memory; a triangle takes one atomic in shared and
//               one in global memory.
//
// Needs         `low` is the vertex of each list. Outputs are added to.
// Source        the forward algorithm (Schank and Wagner, WEA 2005), cut by the third vertex as in
//               kernels/cpu/shards/triangles.py.
#include "tables.cuh"

extern "C" __global__ void choose(
    const uint32* __restrict__ members, int64 entries, const int* __restrict__ list, const uint32* __restrict__ low,
    const int64* __restrict__ starts, const int64* __restrict__ offsets, const uint32* __restrict__ high,
    const int* __restrict__ used, signed char* side, bool* table, int* grouped) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < entries; i += stride) {
        const int at = list[i];
        const int64 a = low[at], b = members[i];
        const int64 end = offsets[a + 1], length = end - offsets[a];
        signed char chosen = -1;
        if (length > 0 && high[end - 1] > b) {
            const int64 row = offsets[b + 1] - offsets[b];
            if (row > 0) {
                // An estimate: the part of N(a) after b has the same share of N(a) as the part of the list after b has of the list.
                const int64 first = starts[at], stop = starts[at + 1], after = length * (stop - i) / (stop - first);
                chosen = after + BUILDING * row / used[b] < row;
                if (chosen) {
                    atomicAdd(&grouped[b], 1);
                } else {
                    table[at] = true;
                }
            }
        }
        side[i] = chosen;
    }
}

// An index in the ascending row `high[begin .. end)` at or before the first member above `vertex`. All lanes get the
// result. The search ends once the warp can load the remaining range at once.
__device__ __forceinline__ int64 beyond(const uint32* __restrict__ high, int64 begin, int64 end, uint32 vertex, int lane) {
    while (end - begin > 32 * PER_LANE) {
        const int64 part = (end - begin + 31) / 32, probe = begin + part * lane;
        const uint32 passed = __ballot_sync(ALL_LANES, probe < end && high[probe] <= vertex);
        if (!passed) return begin;
        begin += part * (31 - __clz(passed));
        end = min(end, begin + part);
    }
    return begin;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS) third_vertex(
    const uint32* __restrict__ tables, const int* __restrict__ parts, int count, unsigned long long* cursor,
    const int* __restrict__ list, const uint32* __restrict__ low, const int64* __restrict__ starts,
    const uint32* __restrict__ members, const int64* __restrict__ offsets, const uint32* __restrict__ high,
    const signed char* __restrict__ side, const int64* __restrict__ group_starts, const int64* __restrict__ entry,
    int* sums, int* found) {
    extern __shared__ uint32 shared[];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int thread = ONE_WARP ? lane : threadIdx.x;  // within the team
    const int first_of_warp = ONE_WARP ? 0 : warp, step = ONE_WARP ? 1 : WARPS;
    Table table;
    table.key = shared + (ONE_WARP ? warp * 2 * SLOTS : 0);
    table.hits = reinterpret_cast<int*>(table.key + SLOTS);
    while (true) {
        const int turn = next_turn(cursor);
        if (turn >= count) break;
        const int64 x = tables[count - 1 - turn];  // the largest tables are last in the list and are processed first
        const int64 vertex = SIDE ? x : low[x];
        const int64 begin = offsets[vertex], end = offsets[vertex + 1];
        const int64* edges = SIDE ? group_starts : starts;
        const int64 from = edges[x] + static_cast<int64>(parts[count - 1 - turn]) * PART;
        const int64 to = min(edges[x + 1], from + PART);
        for (int64 first = begin; first < end; first += MEMBERS) {
            const int size = static_cast<int>(min(end - first, static_cast<int64>(MEMBERS)));
            table.fill(high + first, size, thread);
            for (int64 q = from + first_of_warp; q < to; q += step) {
                int64 i = q;
                if (SIDE) {
                    i = entry[q];
                } else if (side[i] != 0) {
                    continue;
                }
                const uint32 b = members[i];
                const int64 streamed = SIDE ? low[list[i]] : b;
                const int64 stop = offsets[streamed + 1];
                const int64 row = SIDE ? beyond(high, offsets[streamed], stop, b, lane) : offsets[streamed];
                const int hits = warp_sum(table.stream(high, row, stop, lane, sums));
                if (lane == 0 && hits) atomicAdd(&found[i], hits);
            }
            table.flush(high + first, size, thread, sums + first);
        }
    }
}
