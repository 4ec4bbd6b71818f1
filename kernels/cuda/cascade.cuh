// Rounds that remove edges with their triangles, for peel.cu and filter.cu.
//
// A round processes the frontier queue[begun .. end). The other two edges of each triangle of a frontier edge lose the triangle:
// their counts are lowered by one. An edge whose count drops below its limit is appended to the queue and is removed in the next
// round. One barrier of the whole grid separates two rounds. This is enough because the count of an edge encodes the
// round that removes the edge: the count is moved to one of three ranges below zero, chosen by round % 3. The move is
// an addition, which concurrent decrements do not disturb.
//
// Threads   A warp processes up to CHUNK edges at a time, and their shorter rows in units of UNIT entries. An edge with many units
//           is split into parts for all warps; otherwise one edge between two hubs would delay the end of a round. In a round
//           with fewer edges than warps each edge is split from the start.
// Reads     8 bytes an entry of the shorter row and the count (4) of its edge; if the edge remains, the filter (2) of the bucket
//           in the longer row to which the neighbour hashes, and the bucket (32) if the filter's bit is set; for each triangle
//           two counts, which are lowered by atomics.
// Ties      If two edges of a triangle are removed in one round, the edge with the lower number removes the triangle, as in PKT
//           (Kabir and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017).
#pragma once
#include "rows.cuh"

#ifndef COUNTS_TRIANGLES
#define COUNTS_TRIANGLES 0  // whether rounds add up the triangles that they remove
#endif
constexpr int BLOCKS = 2;  // of a multiprocessor; docs/engineering/gpu-kernels.md has times with other values
constexpr int CHUNK = 8;  // most edges that a warp processes at a time
constexpr int ENTRIES = 4;  // entries of a row that a lane loads at once
constexpr int UNIT = 32 * ENTRIES;
constexpr int SPLIT = 16;  // units of a part of a heavy edge
constexpr int BATCH = 2;  // lookups, and triangles, that a lane processes at once
constexpr int PASS = 32 * BATCH;  // entries that a warp looks up at once
constexpr int LOOKUPS = UNIT + PASS;  // capacity of a warp's list of pending lookups
constexpr int TRIANGLES = UNIT + PASS;  // capacity of a warp's list of found triangles
constexpr uint32 HEAVY = HEAVY_PARTS;  // capacity of the list of heavy parts
constexpr int WIDTH = 1 << 27;  // of each range below zero: more than the decrements of an edge that is removed

__device__ __forceinline__ int removed_in(uint32 round) {
    return -1 - WIDTH * static_cast<int>(round % 3);
}

struct Graph {
    const int* __restrict__ low;
    const int* __restrict__ high;
    const int64* __restrict__ begin;
    const int* __restrict__ length;
    const int64* __restrict__ bucket;
    const int2* __restrict__ entry;
    const Bucket* __restrict__ table;
    const unsigned short* __restrict__ filter;
};

// The state of the edges that a round reads and writes.
struct Removal {
    int* queue;
    uint32* tail;
    int* count;
    int now;  // count of edges that are removed in this round, before decrements
    int next;  // count of edges that are removed in the next round
    int limit;
    int near;  // an edge whose count drops below this becomes a candidate, once
    int* candidates;
    uint32* candidate_count;
    bool silent;  // adds neither candidates nor edges to the queue: the caller scans all counts after this round
#if COUNTS_TRIANGLES
    unsigned long long* triangles;
#endif
};

enum State { REMAINS, LEAVING, REMOVED };

__device__ __forceinline__ State state_of(const Removal& removal, int count) {
    if (count >= 0) return REMAINS;
    if (static_cast<uint32>(removal.now - count) < WIDTH) return LEAVING;
    return static_cast<uint32>(removal.next - count) < WIDTH ? REMAINS : REMOVED;
}

// Adds an edge to the queue or to the candidates after a decrement of its count, which was `before`.
__device__ __forceinline__ void after_decrement(const Removal& removal, int edge, int before) {
    if (before == removal.limit) {
        atomicAdd(&removal.count[edge], removal.next - (removal.limit - 1));
        removal.queue[atomicAdd(removal.tail, 1u)] = edge;
    } else if (before == removal.near) removal.candidates[atomicAdd(removal.candidate_count, 1u)] = edge;
}

struct Losers {
    bool f, g;
    bool removed;  // e removes the triangle
};

// Which of f and g lose their triangle with e, which is removed in this round.
__device__ __forceinline__ Losers losers_of(const Removal& removal, int e, int f, int g, int count_f, int count_g) {
    const State state_f = state_of(removal, count_f), state_g = state_of(removal, count_g);
    const bool f_here = state_f == REMAINS || (state_f == LEAVING && e < f);
    const bool g_here = state_g == REMAINS || (state_g == LEAVING && e < g);
    return {state_f == REMAINS && g_here, state_g == REMAINS && f_here, f_here && g_here};
}

// Shared memory of one warp: its edges, their rows, the first unit of each; pending lookups; found triangles.
struct Work {
    Row shorter[CHUNK];
    Row longer[CHUNK];
    int edge[CHUNK];
    int unit[CHUNK];
    int2 lookup[LOOKUPS];  // entries of shorter rows to look up in the longer rows
    int slot[LOOKUPS];  // for each lookup the slot of its edge, plus CHUNK times the buckets that were searched before
    int e[TRIANGLES];
    int f[TRIANGLES];
    int g[TRIANGLES];
};
static_assert(sizeof(Work) == WORK_BYTES, "the shared memory that Python reserves for each warp");

// Lengths of a warp's lists.
struct Pending {
    int lookups;
    int triangles;
#if COUNTS_TRIANGLES
    int removed;  // triangles that this lane has removed
#endif
};

// A warp lowers the counts for all its found triangles, BATCH a lane at once, and empties their list.
__device__ __forceinline__ void lower_counts(const Work& work, Pending& pending, const Removal& removal) {
    const int found = pending.triangles;
    pending.triangles = 0;
    __syncwarp();
    for (int base = 0; base < found; base += 32 * BATCH) {
        int f[BATCH], g[BATCH], count_f[BATCH], count_g[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int h = base + k * 32 + (threadIdx.x & 31);
            f[k] = h < found ? work.f[h] : -1;
            g[k] = h < found ? work.g[h] : -1;
            count_f[k] = h < found ? __ldcg(&removal.count[f[k]]) : 0;
            count_g[k] = h < found ? __ldcg(&removal.count[g[k]]) : 0;
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] < 0) continue;
            const int h = base + k * 32 + (threadIdx.x & 31);
            const Losers lost = losers_of(removal, work.e[h], f[k], g[k], count_f[k], count_g[k]);
#if COUNTS_TRIANGLES
            pending.removed += lost.removed;
#endif
            if (!lost.f) f[k] = -1;
            if (!lost.g) g[k] = -1;
        }
        if (removal.silent) {  // atomics without a result
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                if (f[k] >= 0) atomicSub(&removal.count[f[k]], 1);
                if (g[k] >= 0) atomicSub(&removal.count[g[k]], 1);
            }
            continue;
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) count_f[k] = atomicSub(&removal.count[f[k]], 1);
            if (g[k] >= 0) count_g[k] = atomicSub(&removal.count[g[k]], 1);
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) after_decrement(removal, f[k], count_f[k]);
            if (g[k] >= 0) after_decrement(removal, g[k], count_g[k]);
        }
    }
    __syncwarp();
}

// One lane loads the rows of an edge into slot `slot`. Returns the number of units of the shorter row.
__device__ __forceinline__ int load_rows(Work& work, int slot, int edge, const Graph& graph) {
    const Ends ends = ends_of(graph.begin, graph.length, graph.bucket, graph.low[edge], graph.high[edge]);
    work.edge[slot] = edge;
    work.shorter[slot] = ends.shorter;
    work.longer[slot] = ends.longer;
    return (ends.shorter.length + UNIT - 1) / UNIT;
}

// A warp stores the triangle of each lane with g >= 0.
__device__ __forceinline__ void add_triangle(Work& work, Pending& pending, int e, int f, int g) {
    const uint32 hit = __ballot_sync(ALL_LANES, g >= 0);
    if (g >= 0) {
        const int at = pending.triangles + __popc(hit & ((1u << (threadIdx.x & 31)) - 1));
        work.e[at] = e;
        work.f[at] = f;
        work.g[at] = g;
    }
    pending.triangles += __popc(hit);
}

// A warp performs the last of its pending lookups, at most PASS, in the hash tables of the longer rows. A lookup that
// must go on in the next bucket becomes pending again if other lookups are pending. Otherwise a loop ends it, which is
// faster than passes with few lanes.
__device__ __forceinline__ void run_lookups(Work& work, Pending& pending, const Graph& graph, const Removal& removal) {
    __syncwarp();
    const int lane = threadIdx.x & 31, base = max(pending.lookups - PASS, 0);
    int2 mine[BATCH];
    uint4 neighbours[BATCH], edges[BATCH];
    int slot[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        slot[k] = h < pending.lookups ? work.slot[h] : -1;
        if (slot[k] < 0) continue;
        mine[k] = work.lookup[h];
        const Row& longer = work.longer[static_cast<uint32>(slot[k]) % CHUNK];
        uint32 at = home_of(mine[k].x, longer.buckets) + static_cast<uint32>(slot[k]) / CHUNK;
        if (at >= longer.buckets) at -= longer.buckets;
        // Few buckets are read again soon: a streaming load keeps them from evicting other data from the L2 cache.
        const Bucket* bucket = &graph.table[longer.bucket + at];
        neighbours[k] = __ldcs(&bucket->neighbour);
        edges[k] = __ldcs(&bucket->edge);
    }
    pending.lookups = base;
    const bool last = base == 0;
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        int edge = slot[k] < 0 ? -1 : edge_in(neighbours[k], edges[k], mine[k].x);
        bool goes_on = slot[k] >= 0 && edge < 0 && neighbours[k].w != EMPTY;
        if (goes_on && last) {
            const Row& longer = work.longer[static_cast<uint32>(slot[k]) % CHUNK];
            const uint32 at = home_of(mine[k].x, longer.buckets) + static_cast<uint32>(slot[k]) / CHUNK + 1;
            edge = find_in_table(longer, graph.table, mine[k].x, at >= longer.buckets ? at - longer.buckets : at);
            goes_on = false;
        }
        add_triangle(work, pending, slot[k] < 0 ? -1 : work.edge[static_cast<uint32>(slot[k]) % CHUNK], mine[k].y, edge);
        const uint32 lanes = __ballot_sync(ALL_LANES, goes_on);
        if (goes_on) {
            const int at = pending.lookups + __popc(lanes & ((1u << lane) - 1));
            work.lookup[at] = mine[k];
            work.slot[at] = slot[k] + CHUNK;
        }
        pending.lookups += __popc(lanes);
    }
    if (pending.triangles > TRIANGLES - UNIT) lower_counts(work, pending, removal);
    __syncwarp();
}

// Drops entries (sets neighbour -1) whose own edge is removed or removes the triangle itself. The counts of a row that ascends are
// close together, so this saves more requests than it costs.
__device__ __forceinline__ void drop_removed(int2 (&entries)[ENTRIES], int e, const Removal& removal) {
    int count[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) count[k] = entries[k].x < 0 ? GONE : __ldcg(&removal.count[entries[k].y]);
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const State state = state_of(removal, count[k]);
        if (state == REMOVED || (state == LEAVING && entries[k].y < e)) entries[k].x = -1;
    }
}

// A warp processes UNIT entries of the shorter row. Entries that pass the filter of the longer row become pending
// lookups. The warp runs lookups whenever at least PASS are pending.
__device__ __forceinline__ void process_unit(
    Work& work, int i, int start, Pending& pending, const Graph& graph, const Removal& removal) {
    const int lane = threadIdx.x & 31;
    const int64 from = work.shorter[i].begin, bucket = work.longer[i].bucket;
    const int length = work.shorter[i].length;
    const uint32 buckets = work.longer[i].buckets;
    int2 mine[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const int j = start + k * 32 + lane;
        mine[k] = j < length ? graph.entry[from + j] : make_int2(-1, -1);
    }
    if (!buckets) {
        const Row longer = work.longer[i];
#pragma unroll
        for (int k = 0; k < ENTRIES; ++k) {
            add_triangle(work, pending, work.edge[i], mine[k].y, mine[k].x < 0 ? -1 : find_in_short(longer, graph.entry, mine[k].x));
        }
        if (pending.triangles > TRIANGLES - UNIT) lower_counts(work, pending, removal);
        return;
    }
    drop_removed(mine, work.edge[i], removal);
    uint32 filter[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        if (start + k * 32 >= length) {  // for all lanes
            filter[k] = 0;
            continue;
        }
        const int wanted = mine[k].x;
        filter[k] = wanted < 0 ? 0 : graph.filter[bucket + home_of(wanted, buckets)] >> filter_bit(wanted) & 1;
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        if (start + k * 32 >= length) break;
        const uint32 pass = __ballot_sync(ALL_LANES, filter[k]);
        if (filter[k]) {
            const int at = pending.lookups + __popc(pass & ((1u << lane) - 1));
            work.lookup[at] = mine[k];
            work.slot[at] = i;
        }
        pending.lookups += __popc(pass);
    }
    while (pending.lookups >= PASS) run_lookups(work, pending, graph, removal);
}

// A warp processes the edges frontier[first .. first + edges). An edge with more than SPLIT units goes to the list of
// heavy parts instead, if all its parts fit.
__device__ __forceinline__ void process_chunk(
    Work& work, const int* frontier, uint32 first, int edges, Pending& pending, int2* heavy, uint32* heavy_parts, const Graph& graph,
    const Removal& removal) {
    const int lane = threadIdx.x & 31;
    int units = 0;
    if (lane < edges) {
        const int edge = __ldcg(&frontier[first + lane]);
        units = load_rows(work, lane, edge, graph);
        if (units > SPLIT) {
            const uint32 parts = (units + SPLIT - 1) / SPLIT, room = atomicAdd(heavy_parts, parts);
            const bool fits = room + parts <= HEAVY;
            for (uint32 p = 0; p < parts && room + p < HEAVY; ++p) {
                heavy[room + p] = make_int2(fits ? edge : -1, static_cast<int>(p));
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
        process_unit(work, i, (unit - work.unit[i]) * UNIT, pending, graph, removal);
    }
    while (pending.lookups) run_lookups(work, pending, graph, removal);
    __syncwarp();
}

// A warp processes every step-th unit of one edge, from `first` to `stop`.
__device__ __forceinline__ void process_part(
    Work& work, int edge, int first, int stop, int step, Pending& pending, const Graph& graph, const Removal& removal) {
    int units = 0;
    if ((threadIdx.x & 31) == 0) units = load_rows(work, 0, edge, graph);
    units = __shfl_sync(ALL_LANES, units, 0);
    __syncwarp();
    for (int unit = first; unit < min(units, stop); unit += step) process_unit(work, 0, unit * UNIT, pending, graph, removal);
    while (pending.lookups) run_lookups(work, pending, graph, removal);
    __syncwarp();
}

// A warp ends its part of a round: it lowers the counts for its last triangles.
__device__ __forceinline__ void finish(Work& work, Pending& pending, const Removal& removal) {
    lower_counts(work, pending, removal);
#if COUNTS_TRIANGLES
    const int removed = warp_sum(pending.removed);
    if (removed && (threadIdx.x & 31) == 0) atomicAdd(removal.triangles, static_cast<unsigned long long>(removed));
    pending.removed = 0;
#endif
}

// Runs one round, which removes frontier[0 .. edges), and the barrier after it. Returns the tail of the queue. The round has three
// `counters`, 0 at the start: edges processed, heavy parts, heavy parts processed.
__device__ __forceinline__ uint32 run_round(
    Work& work, const int* frontier, uint32 edges, uint32* counters, int2* heavy, Barrier* barrier, const Graph& graph,
    const Removal& removal) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    Pending pending = {};
    if (edges <= warps) {
        const uint32 parts = warps / edges, part = warp / edges;
        if (part < parts) {
            const int edge = __ldcg(&frontier[warp % edges]);
            process_part(work, edge, static_cast<int>(part), 0x7FFFFFFF, static_cast<int>(parts), pending, graph, removal);
        }
        finish(work, pending, removal);
        return grid_barrier(barrier, removal.tail);
    }
    const uint32 chunk = max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * 8)));
    for (uint32 first = warp * chunk; first < edges; first = next_items(&counters[0], chunk, edges, warps)) {
        const int size = static_cast<int>(min(chunk, edges - first));
        process_chunk(work, frontier, first, size, pending, heavy, &counters[1], graph, removal);
    }
    finish(work, pending, removal);
    const uint32 tail = grid_barrier(barrier, removal.tail);
    const uint32 parts = min(__ldcg(&counters[1]), HEAVY);
    if (parts == 0) return tail;
    for (uint32 p = warp; p < parts; p = next_items(&counters[2], 1, parts, warps)) {
        const int2 part = __ldcg(&heavy[p]);
        if (part.x >= 0) process_part(work, part.x, part.y * SPLIT, (part.y + 1) * SPLIT, 1, pending, graph, removal);
    }
    finish(work, pending, removal);
    return grid_barrier(barrier, removal.tail);
}
