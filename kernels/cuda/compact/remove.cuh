// One round: removes the triangles of the edges that leave.
//
// When an edge (u, v) leaves, one of its rows is streamed, and the neighbours w that may be in the other row are looked
// up there. The edges (u, w) and (v, w) lose each triangle that is found: their entries in these two rows have just
// been read, and the halves in these entries are lowered. If such an entry is a reporter, the count of the keeper must
// be lowered instead. A warp collects these reports until there are many, and looks up their keepers together.
//
// Threads   A warp processes up to CHUNK edges at a time, and their shorter rows in units of UNIT slots. An edge with
//           many units is split into parts for all warps. In a round with fewer edges than warps each edge is split
//           from the start.
// Reads     8 bytes a slot of the shorter row; the filter (2) of the bucket in the longer row to which the neighbour
//           hashes, and the bucket (32) if the filter's bit is set; for each triangle two atomics on words in the cache
//           lines just read.
// Ties      If two edges {x, y} and {x, w} of a triangle leave in one round, the edge with the lower of y and w removes
//           the triangle: this is the order of the edges by their ends (docs/shards.md).
#pragma once
#include "compact/state.cuh"

constexpr int WARPS = 16;           // of a block; as in whole_graph.py
constexpr int BLOCKS = 2;           // of a multiprocessor
constexpr int CHUNK = 8;            // most edges that a warp processes at a time; as in whole_graph.py
constexpr int ENTRIES = 4;          // slots of a row that a lane loads at once
constexpr int UNIT = 32 * ENTRIES;
constexpr int SPLIT = 16;           // units of a part of a heavy edge
constexpr int BATCH = 2;            // lookups that a lane processes at once
constexpr int PASS = 32 * BATCH;    // neighbours that a warp looks up at once
constexpr int WANTED = UNIT + PASS; // capacity of a warp's list of neighbours to look up; as in whole_graph.py
constexpr int REPORTS = 3 * PASS;    // capacity of a warp's list of reports; as in whole_graph.py
constexpr uint32 FIRST_FAR = CHUNK;  // see Work.place
constexpr uint32 FARTHEST = 255 / FIRST_FAR;
constexpr uint32 NO_PLACE = 256;
constexpr uint32 HEAVY = 1 << 18;   // capacity of the list of heavy parts; as in whole_graph.py

// Shared memory of one warp: its edges, their rows, the first unit of each; neighbours to look up; reports for keepers.
struct Work {
    Row shorter[CHUNK];
    Row longer[CHUNK];
    uint2 wanted[WANTED];          // neighbour and slot in the shorter row
    uint2 report[REPORTS];         // the vertex and the neighbour of the entry that is the keeper
    int word[WANTED];              // the word of the wanted slot
    uint32 streamed[CHUNK];        // the vertex of the shorter row
    uint32 probed[CHUNK];          // the vertex of the longer row
    int unit[CHUNK];
    unsigned char place[WANTED];   // index of the edge in the chunk, plus FIRST_FAR times the buckets searched before
};

// Lengths of a warp's lists.
struct Kept {
    int wanted;
    int reports;
};

// The data that a round reads and writes. It is in shared memory, because a thread has few registers.
struct Ground {
    Rows rows;
    Lists lists;
    Limits limits;
};

// Lists an edge if its word, which was `before`, reached a limit by a decrement. The entry is slot `at` of `vertex`.
__device__ __forceinline__ void take_note(const Ground& ground, int before, uint32 vertex, uint32 at) {
    if (before == ground.limits.alarm + 1) {
        const uint32 place = atomicAdd(&ground.lists.state->alarms, 1u);
        if (place < ground.lists.alarm_room) ground.lists.alarm[place] = make_uint2(vertex, at);
    } else if (before == KEEPER + ground.limits.level + 1) {
        const uint32 place = atomicAdd(&ground.lists.state->tail, 1u);
        const uint32 room = ground.lists.ring_room;
        if (place - ground.limits.base < room) ground.lists.ring[place & (room - 1)] = make_uint2(vertex, at);
    }
}

// One lane loads the rows of an edge to index `place`. Returns the number of units of the shorter row.
__device__ __forceinline__ int look_up(Work& work, int place, uint2 edge, const Rows& rows) {
    const Row one = rows.row[edge.x];
    const uint32 neighbour = key_at(rows, 4 * one.begin + edge.y);
    const Row two = rows.row[neighbour];
    const bool swap = one.buckets > two.buckets;
    work.shorter[place] = swap ? two : one;
    work.longer[place] = swap ? one : two;
    work.streamed[place] = swap ? neighbour : edge.x;
    work.probed[place] = swap ? edge.x : neighbour;
    return static_cast<int>(((swap ? two : one).buckets + UNIT / 4 - 1) / (UNIT / 4));
}

// A warp adds a report to its list for each lane for which `has` is true.
__device__ __forceinline__ void keep_report(Work& work, Kept& kept, bool has, uint32 keeper, uint32 neighbour) {
    const uint32 lanes = __ballot_sync(ALL_LANES, has);
    if (has) work.report[kept.reports + __popc(lanes & ((1u << (threadIdx.x & 31)) - 1))] = make_uint2(keeper, neighbour);
    kept.reports += __popc(lanes);
}

// A warp lowers the counts of the keepers in its last reports, at most PASS.
__device__ __noinline__ void tell_keepers(const Work& work, int reports, const Ground& ground) {
    __syncwarp();
    const int lane = threadIdx.x & 31, base = max(reports - PASS, 0);
    uint2 report[BATCH];
    Row row[BATCH];
    Bucket read[BATCH];
    uint32 at[BATCH];
    bool given[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        given[k] = h < reports;
        if (!given[k]) continue;
        report[k] = work.report[h];
        row[k] = ground.rows.row[report[k].x];
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        if (!given[k]) continue;
        at[k] = home_of(report[k].y, row[k].buckets);
        read[k] = read_bucket(keys_of(ground.rows, row[k]), at[k]);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        if (!given[k]) continue;
        at[k] = found_in(read[k], words_of(ground.rows, row[k]), at[k], report[k].y).at;
        if (at[k] == EMPTY) at[k] = find(ground.rows, row[k], report[k].y).at;
    }
    if (ground.limits.silent) {
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (given[k]) atomicSub(word_at(ground.rows, 4 * row[k].begin + at[k]), 1);
        }
    } else {
        int before[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (given[k]) before[k] = atomicSub(word_at(ground.rows, 4 * row[k].begin + at[k]), 1);
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (given[k]) take_note(ground, before[k], report[k].x, at[k]);
        }
    }
    __syncwarp();
}

// Calls `tell_keepers` until at most `most` reports are left.
__device__ __forceinline__ void tell(const Work& work, Kept& kept, int most, const Ground& ground) {
    while (kept.reports > most) {
        tell_keepers(work, kept.reports, ground);
        kept.reports = max(kept.reports - PASS, 0);
    }
}

// A warp looks up the last of its wanted neighbours, at most PASS, in the longer rows, and lowers the halves of the
// triangles found. A lane issues all its requests of one kind at once. A neighbour that may be in the next bucket is
// added to the wanted neighbours again if others are left. Otherwise a loop finds it.
__device__ __noinline__ Kept search(Work& work, Kept kept, const Ground& ground) {
    __syncwarp();
    const int lane = threadIdx.x & 31, base = max(kept.wanted - PASS, 0), leaves = leaves_in(ground.limits.round);
    Bucket read[BATCH];
    uint32 bucket[BATCH], place[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        place[k] = h < kept.wanted ? work.place[h] : NO_PLACE;
        if (place[k] == NO_PLACE) continue;
        const Row& longer = work.longer[place[k] % FIRST_FAR];
        bucket[k] = home_of(work.wanted[h].x, longer.buckets) + place[k] / FIRST_FAR;
        if (bucket[k] >= longer.buckets) bucket[k] -= longer.buckets;
        read[k] = read_bucket(keys_of(ground.rows, longer), bucket[k]);
    }
    uint32 f[BATCH], g[BATCH];  // slots that lose, EMPTY for none
    bool again[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        const uint32 i = place[k] % FIRST_FAR;
        f[k] = g[k] = EMPTY;
        again[k] = false;
        bool tells_f = false, tells_g = false;
        if (place[k] != NO_PLACE) {
            const uint2 mine = work.wanted[h];
            Found found = found_in(read[k], words_of(ground.rows, work.longer[i]), bucket[k], mine.x);
            if (found.at == EMPTY && is_full(read[k])) {
                again[k] = base && place[k] / FIRST_FAR < FARTHEST;
                if (!again[k]) found = find(ground.rows, work.longer[i], mine.x);
            }
            const bool g_stands = stands(found.word);
            if (found.at != EMPTY && (g_stands || (found.word == leaves && work.streamed[i] < mine.x))) {
                const int word = work.word[h];
                if (stands(word)) {
                    tells_f = word >= REPORTER;
                    if (!tells_f) f[k] = mine.y;
                }
                if (g_stands) {
                    tells_g = found.word >= REPORTER;
                    if (!tells_g) g[k] = found.at;
                }
            }
        }
        keep_report(work, kept, tells_f, tells_f ? work.wanted[h].x : 0, tells_f ? work.streamed[i] : 0);
        keep_report(work, kept, tells_g, tells_g ? work.wanted[h].x : 0, tells_g ? work.probed[i] : 0);
    }
    if (ground.limits.silent) {  // atomics that return no value
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const uint32 i = place[k] % FIRST_FAR;
            if (f[k] != EMPTY) atomicSub(word_at(ground.rows, 4 * work.shorter[i].begin + f[k]), 1);
            if (g[k] != EMPTY) atomicSub(word_at(ground.rows, 4 * work.longer[i].begin + g[k]), 1);
        }
    } else {
        int before_f[BATCH], before_g[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const uint32 i = place[k] % FIRST_FAR;
            if (f[k] != EMPTY) before_f[k] = atomicSub(word_at(ground.rows, 4 * work.shorter[i].begin + f[k]), 1);
            if (g[k] != EMPTY) before_g[k] = atomicSub(word_at(ground.rows, 4 * work.longer[i].begin + g[k]), 1);
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const uint32 i = place[k] % FIRST_FAR;
            if (f[k] != EMPTY) take_note(ground, before_f[k], work.streamed[i], f[k]);
            if (g[k] != EMPTY) take_note(ground, before_g[k], work.probed[i], g[k]);
        }
    }
    kept.wanted = base;
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const uint32 lanes = __ballot_sync(ALL_LANES, again[k]);
        if (!lanes) continue;
        // Entries move towards the start of the list, and overwrite no entry that is still to be read.
        const int h = base + k * 32 + lane, to = kept.wanted + __popc(lanes & ((1u << lane) - 1));
        uint2 mine = make_uint2(0, 0);
        int word = 0;
        if (again[k]) mine = work.wanted[h], word = work.word[h];
        __syncwarp();
        if (again[k]) {
            work.wanted[to] = mine;
            work.word[to] = word;
            work.place[to] = static_cast<unsigned char>(place[k] + FIRST_FAR);
        }
        kept.wanted += __popc(lanes);
    }
    tell(work, kept, PASS - 1, ground);
    __syncwarp();
    return kept;
}

// A warp processes UNIT slots of the shorter row. A neighbour is wanted if its edge remains, or leaves and does not
// remove the triangle itself, and if it passes the filter of the longer row. The warp looks up whenever at least PASS
// are wanted.
__device__ __forceinline__ void take_unit(
    Work& work, int i, int start, Kept& kept, const Ground& ground) {
    const int lane = threadIdx.x & 31, leaves = leaves_in(ground.limits.round);
    const Row longer = work.longer[i];
    const int64 from = 4 * work.shorter[i].begin;
    const uint32 slots = 4 * work.shorter[i].buckets, v = work.probed[i];
    uint2 mine[ENTRIES];
    bool passes[ENTRIES];
    read_slots(ground.rows, from, start + lane, slots, leaves, mine);
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const int word = static_cast<int>(mine[k].y);
        // The comparison also excludes the entry of the removed edge itself.
        passes[k] = mine[k].x != EMPTY && (stands(word) || (word == leaves && v < mine[k].x));
        if (passes[k]) passes[k] = may_have(ground.rows, longer, mine[k].x);
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 pass = __ballot_sync(ALL_LANES, passes[k]);
        if (passes[k]) {
            const int at = kept.wanted + __popc(pass & ((1u << lane) - 1));
            work.wanted[at] = make_uint2(mine[k].x, start + k * 32 + lane);
            work.word[at] = static_cast<int>(mine[k].y);
            work.place[at] = static_cast<unsigned char>(i);
        }
        kept.wanted += __popc(pass);
    }
    while (kept.wanted >= PASS) kept = search(work, kept, ground);
}

// A warp processes the edges ring[first .. first + edges). An edge with more than SPLIT units goes to the list of heavy
// parts instead, if all its parts fit.
__device__ __forceinline__ void take_chunk(
    Work& work, uint32 first, int edges, Kept& kept, uint32* heavy_parts, const Ground& ground) {
    const int lane = threadIdx.x & 31;
    int units = 0;
    if (lane < edges) {
        const uint2 edge = __ldcg(&ground.lists.ring[(first + lane) & (ground.lists.ring_room - 1)]);
        units = look_up(work, lane, edge, ground.rows);
        if (units > SPLIT) {
            const uint32 parts = (units + SPLIT - 1) / SPLIT, room = atomicAdd(heavy_parts, parts);
            const bool fits = room + parts <= HEAVY;
            for (uint32 p = 0; p < parts && room + p < HEAVY; ++p) {
                ground.lists.heavy[room + p] = {edge.x, edge.y, p, fits};
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
        take_unit(work, i, (unit - work.unit[i]) * UNIT, kept, ground);
    }
    while (kept.wanted) kept = search(work, kept, ground);
    __syncwarp();
}

// A warp processes every step-th unit of one edge, from `first` to `stop` - 1.
__device__ __forceinline__ void take_part(
    Work& work, uint2 edge, int first, int stop, int step, Kept& kept, const Ground& ground) {
    int units = 0;
    if ((threadIdx.x & 31) == 0) units = look_up(work, 0, edge, ground.rows);
    units = __shfl_sync(ALL_LANES, units, 0);
    __syncwarp();
    for (int unit = first; unit < min(units, stop); unit += step) take_unit(work, 0, unit * UNIT, kept, ground);
    while (kept.wanted) kept = search(work, kept, ground);
    __syncwarp();
}

// Runs the round in which the edges ring[begun .. end) leave, and the barrier after it. `counters` are the round's
// three counters, 0 at the start.
__device__ __forceinline__ Said run_round(
    Work& work, uint32 begun, uint32 end, uint32* counters, Meeting* meeting, const Rows& rows, const Lists& lists,
    const Limits& limits) {
    __shared__ Ground ground;
    if (threadIdx.x == 0) ground = {rows, lists, limits};
    __syncthreads();
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 edges = end - begun;
    Kept kept = {0, 0};
    if (edges <= warps) {
        const uint32 parts = warps / edges, part = warp / edges;
        if (part < parts) {
            const uint2 edge = __ldcg(&lists.ring[(begun + warp % edges) & (lists.ring_room - 1)]);
            take_part(work, edge, static_cast<int>(part), 0x7FFFFFFF, static_cast<int>(parts), kept, ground);
        }
        tell(work, kept, 0, ground);
        return meet(meeting, lists.state);
    }
    const uint32 chunk = max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * 8)));
    for (uint32 first = warp * chunk; first < edges; first = next_items(&counters[0], chunk, edges, warps)) {
        const int size = static_cast<int>(min(chunk, edges - first));
        take_chunk(work, begun + first, size, kept, &counters[1], ground);
    }
    tell(work, kept, 0, ground);
    const Said said = meet(meeting, lists.state);
    const uint32 parts = min(__ldcg(&counters[1]), HEAVY);
    if (parts == 0) return said;
    for (uint32 p = warp; p < parts; p = next_items(&counters[2], 1, parts, warps)) {
        const uint4 part = __ldcg(&lists.heavy[p]);
        const int first = static_cast<int>(part.z) * SPLIT;
        if (part.w) take_part(work, make_uint2(part.x, part.y), first, first + SPLIT, 1, kept, ground);
    }
    tell(work, kept, 0, ground);
    return meet(meeting, lists.state);
}
