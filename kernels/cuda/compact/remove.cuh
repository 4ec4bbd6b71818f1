// One round: the triangles of the edges that leave are removed.
//
// An edge (u, v) leaves: one of its rows is streamed, and those neighbours w that may be in the other one are looked up there. Each
// triangle is lost by the edges (u, w) and (v, w): their entries in these two rows are at hand, and their halves there are lowered.
// Where that entry is a reporter the keeper is looked up.
//
// Threads   a warp takes up to CHUNK edges at a time and their shorter rows in units of UNIT slots. Parts of edges with many units
//           are left to all warps; where there are fewer edges than warps each edge is shared out from the start.
// Reads     8 bytes a slot of the shorter row; the filter (2) of the bucket where a neighbour belongs in the longer one, and the
//           bucket (32) where the filter lets it through; for each triangle two atomics next to what was read.
// Ties      of two edges {x, y} and {x, w} of one triangle that leave in one round, the one with the lower of y and w takes it: this
//           is the order of the edges by their ends (docs/shards.md).
#pragma once
#include "compact/state.cuh"

constexpr int WARPS = 16;           // of a block; as in compact.py
constexpr int BLOCKS = 2;           // of a multiprocessor
constexpr int CHUNK = 8;            // most edges that a warp takes at a time; as in compact.py
constexpr int ENTRIES = 4;          // slots of a row that a lane has under way at once
constexpr int UNIT = 32 * ENTRIES;
constexpr int SPLIT = 16;           // units of a part of a heavy edge
constexpr int BATCH = 2;            // lookups that a lane has under way at once
constexpr int PASS = 32 * BATCH;    // neighbours that a warp looks up at once
constexpr int WANTED = UNIT + PASS; // neighbours that a warp keeps to look up; as in compact.py
constexpr uint32 HEAVY = 1 << 18;   // room for parts of heavy edges; as in compact.py

// What one warp has taken: edges, their rows, where the units of each start; and what it has to look up.
struct Work {
    Row shorter[CHUNK];
    Row longer[CHUNK];
    uint2 wanted[WANTED];          // neighbour, and slot in the shorter row
    int word[WANTED];              // beside it
    uint32 streamed[CHUNK];        // whose the shorter row is
    uint32 probed[CHUNK];          // and the longer
    int unit[CHUNK];
    unsigned char place[WANTED];   // whose entries these are
};

// An entry of a vertex, at a slot of its row, loses a triangle.
__device__ __forceinline__ void lose(
    const Rows& rows, const Lists& lists, const Limits& limits, uint32 vertex, uint32 at, int64 begin, int word, uint32 neighbour) {
    if (word >= REPORTER) {
        const Row row = rows.row[neighbour];
        at = find(rows, row, vertex).at;
        vertex = neighbour;
        begin = row.begin;
    }
    int* const half = word_at(rows, 4 * begin + at);
    if (limits.silent) {
        atomicSub(half, 1);
        return;
    }
    const int before = atomicSub(half, 1);
    if (before == limits.alarm + 1) {
        const uint32 place = atomicAdd(&lists.state->alarms, 1u);
        if (place < lists.alarm_room) lists.alarm[place] = make_uint2(vertex, at);
    } else if (before == KEEPER + limits.level + 1) {
        const uint32 place = atomicAdd(&lists.state->tail, 1u);
        if (place - limits.base < lists.ring_room) lists.ring[place & (lists.ring_room - 1)] = make_uint2(vertex, at);
    }
}

// One lane looks up the rows of an edge; gives the units of the shorter one.
__device__ __forceinline__ int look_up(Work& work, int place, uint2 edge, const Rows& rows) {
    const Row one = rows.row[edge.x];
    const uint32 neighbour = rows.slot[4 * one.begin + edge.y].x;
    const Row two = rows.row[neighbour];
    const bool swap = one.buckets > two.buckets;
    work.shorter[place] = swap ? two : one;
    work.longer[place] = swap ? one : two;
    work.streamed[place] = swap ? neighbour : edge.x;
    work.probed[place] = swap ? edge.x : neighbour;
    return static_cast<int>(((swap ? two : one).buckets + UNIT / 4 - 1) / (UNIT / 4));
}

// A warp looks up the last of the neighbours that it keeps, PASS at most, in the longer rows; entries of triangles lose them.
__device__ __forceinline__ void search(Work& work, int& kept, const Rows& rows, const Lists& lists, const Limits& limits) {
    __syncwarp();
    const int lane = threadIdx.x & 31, base = max(kept - PASS, 0);
    uint32 wanted[BATCH];
    uint4 first[BATCH], second[BATCH];
    int place[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        place[k] = h < kept ? work.place[h] : -1;
        if (place[k] < 0) continue;
        wanted[k] = work.wanted[h].x;
        const Row& longer = work.longer[place[k]];
        const uint2* const bucket = rows.slot + 4 * (longer.begin + home_of(wanted[k], longer.buckets));
        first[k] = two_slots(bucket);
        second[k] = two_slots(bucket + 2);
    }
    const int leaves = leaves_in(limits.round);
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        if (place[k] < 0) continue;
        const int h = base + k * 32 + lane;
        const Row& longer = work.longer[place[k]];
        Found found = found_in(first[k], second[k], home_of(wanted[k], longer.buckets), wanted[k]);
        if (found.at == EMPTY && second[k].z != EMPTY) found = find(rows, longer, wanted[k]);
        if (found.at == EMPTY) continue;
        const int word = work.word[h];
        const uint32 u = work.streamed[place[k]], v = work.probed[place[k]];
        const bool g_stands = stands(found.word);
        if (!g_stands && !(found.word == leaves && u < wanted[k])) continue;
        if (stands(word)) lose(rows, lists, limits, u, work.wanted[h].y, work.shorter[place[k]].begin, word, wanted[k]);
        if (g_stands) lose(rows, lists, limits, v, found.at, longer.begin, found.word, wanted[k]);
    }
    kept = base;
    __syncwarp();
}

// A warp takes UNIT slots of the shorter row: neighbours whose edge stands, or leaves and does not take the triangle itself, are kept if
// the filter of the longer row lets them through, and looked up as they become many.
__device__ __forceinline__ void take_unit(
    Work& work, int i, int start, int& kept, const Rows& rows, const Lists& lists, const Limits& limits) {
    const int lane = threadIdx.x & 31, leaves = leaves_in(limits.round);
    const Row longer = work.longer[i];
    const int64 from = 4 * work.shorter[i].begin;
    const uint32 slots = 4 * work.shorter[i].buckets, v = work.probed[i];
    uint2 mine[ENTRIES];
    bool passes[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 j = start + k * 32 + lane;
        mine[k] = j < slots ? __ldcg(&rows.slot[from + j]) : make_uint2(EMPTY, 0);
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const int word = static_cast<int>(mine[k].y);
        // The edge itself leaves, too.
        passes[k] = mine[k].x != EMPTY && (stands(word) || (word == leaves && v < mine[k].x));
        if (passes[k]) passes[k] = may_have(rows, longer, mine[k].x);
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 pass = __ballot_sync(ALL_LANES, passes[k]);
        if (passes[k]) {
            const int at = kept + __popc(pass & ((1u << lane) - 1));
            work.wanted[at] = make_uint2(mine[k].x, start + k * 32 + lane);
            work.word[at] = static_cast<int>(mine[k].y);
            work.place[at] = static_cast<unsigned char>(i);
        }
        kept += __popc(pass);
    }
    while (kept >= PASS) search(work, kept, rows, lists, limits);
}

// The edges ring[first .. first + edges) are one warp's work, but for those of more than SPLIT units, whose parts go on the list of
// heavy ones while it has room.
__device__ __forceinline__ void take_chunk(
    Work& work, uint32 first, int edges, int& kept, uint32* heavy_parts, const Rows& rows, const Lists& lists,
    const Limits& limits) {
    const int lane = threadIdx.x & 31;
    int units = 0;
    if (lane < edges) {
        const uint2 edge = __ldcg(&lists.ring[(first + lane) & (lists.ring_room - 1)]);
        units = look_up(work, lane, edge, rows);
        if (units > SPLIT) {
            const uint32 parts = (units + SPLIT - 1) / SPLIT, room = atomicAdd(heavy_parts, parts);
            const bool fits = room + parts <= HEAVY;
            for (uint32 p = 0; p < parts && room + p < HEAVY; ++p) {
                lists.heavy[room + p] = {edge.x, edge.y, p, fits};
            }
            if (fits) units = 0;
        }
    }
    int sum = units;
    for (int step = 1; step < CHUNK; step *= 2) {
        const int before = __shfl_up_sync(ALL_LANES, sum, step);
        if (lane >= step) sum += before;
    }
    if (lane < CHUNK) work.unit[lane] = sum - units;
    const int all = __shfl_sync(ALL_LANES, sum, CHUNK - 1);
    __syncwarp();
    for (int unit = 0; unit < all; ++unit) {
        const int i = __popc(__ballot_sync(ALL_LANES, lane < edges && work.unit[lane < edges ? lane : 0] <= unit)) - 1;
        take_unit(work, i, (unit - work.unit[i]) * UNIT, kept, rows, lists, limits);
    }
    while (kept) search(work, kept, rows, lists, limits);
    __syncwarp();
}

// Every step-th unit of one edge from `first` on, as far as `stop`.
__device__ __forceinline__ void take_part(
    Work& work, uint2 edge, int first, int stop, int step, int& kept, const Rows& rows, const Lists& lists,
    const Limits& limits) {
    int units = 0;
    if ((threadIdx.x & 31) == 0) units = look_up(work, 0, edge, rows);
    units = __shfl_sync(ALL_LANES, units, 0);
    __syncwarp();
    for (int unit = first; unit < min(units, stop); unit += step) take_unit(work, 0, unit * UNIT, kept, rows, lists, limits);
    while (kept) search(work, kept, rows, lists, limits);
    __syncwarp();
}

// The next run of `chunk` items: one a warp is its own, the others come from the cursor; `end` and beyond for none.
__device__ __forceinline__ uint32 next_items(uint32* cursor, uint32 chunk, uint32 end, uint32 warps) {
    if (warps * chunk >= end) return end;
    uint32 taken = 0;
    if ((threadIdx.x & 31) == 0) taken = warps * chunk + atomicAdd(cursor, chunk);
    return __shfl_sync(ALL_LANES, taken, 0);
}

// The edges ring[begun .. end) leave, up to and with the meeting after it. `counters` are the round's own three, 0 at first.
__device__ __forceinline__ Said run_round(
    Work& work, uint32 begun, uint32 end, uint32* counters, Meeting* meeting, const Rows& rows, const Lists& lists,
    const Limits& limits) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 edges = end - begun;
    int kept = 0;
    if (edges <= warps) {
        const uint32 parts = warps / edges, part = warp / edges;
        if (part < parts) {
            const uint2 edge = __ldcg(&lists.ring[(begun + warp % edges) & (lists.ring_room - 1)]);
            take_part(work, edge, static_cast<int>(part), 0x7FFFFFFF, static_cast<int>(parts), kept, rows, lists, limits);
        }
        return meet(meeting, lists.state);
    }
    const uint32 chunk = max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * 8)));
    for (uint32 first = warp * chunk; first < edges; first = next_items(&counters[0], chunk, edges, warps)) {
        const int size = static_cast<int>(min(chunk, edges - first));
        take_chunk(work, begun + first, size, kept, &counters[1], rows, lists, limits);
    }
    const Said said = meet(meeting, lists.state);
    const uint32 parts = min(__ldcg(&counters[1]), HEAVY);
    if (parts == 0) return said;
    for (uint32 p = warp; p < parts; p = next_items(&counters[2], 1, parts, warps)) {
        const uint4 part = __ldcg(&lists.heavy[p]);
        const int first = static_cast<int>(part.z) * SPLIT;
        if (part.w) take_part(work, make_uint2(part.x, part.y), first, first + SPLIT, 1, kept, rows, lists, limits);
    }
    return meet(meeting, lists.state);
}
