// Rounds in which edges fall and take their triangles along, under cascade.cu (many bands) and peel.cu (level by level).
//
// A round takes the frontier queue[begun .. end). Each triangle of these edges is lost by its other two: their counts go down
// by one, and an edge whose count drops below its limit is appended to the queue, to fall in the next round. One barrier of
// the whole grid parts two rounds, because the count of a falling edge says itself in which round it falls: it is moved to
// one of three ranges below zero, round % 3 in turn, by an addition that other threads' decrements do not disturb.
//
// Threads   a warp takes up to CHUNK edges at a time and their shorter rows in units of UNIT entries. Parts of edges with
//           many units are left to all warps: else an edge between two hubs would be the end of every round. Where there are
//           fewer edges than warps each edge is shared out from the start.
// Reads     8 bytes an entry of the shorter row and the count (4) of its edge; if that stands, the filter (2) of the bucket where
//           its neighbour belongs in the longer row, and the bucket (32) where the filter lets it through; for each triangle
//           two counts, which it lowers by atomics.
// Ties      of two edges of one triangle that fall in one round the lower number takes it, as in PKT (Kabir and Madduri,
//           "Parallel k-truss decomposition on multicore systems", HPEC 2017).
//
// BANDS: an edge's limit is threshold[band[e]], and a triangle counts for e only if its other edges lie in a higher band or
// stand in e's own. Without, the limit is one for all.
#pragma once
#include "rows.cuh"

#ifndef BANDS
#define BANDS 0
#endif
// Measured on one H200, R-MAT 24, seconds of peeling: two blocks of 16 warps 1.55; with two entries of a row under way instead of
// four 1.58; two blocks of 20 warps, which spill, 1.67, and with one lookup under way, which do not, 1.60; three blocks of 16
// warps 1.90. Chunks from 4 to 32 are alike, and reading a unit ahead.
constexpr int WARPS = 16;                // of a block; as in launch.py
constexpr int BLOCKS = 2;                // of a multiprocessor
constexpr int CHUNK = 8;                 // most edges that a warp takes at a time; as in launch.py
constexpr int ENTRIES = 4;               // entries of a row that a lane has under way at once
constexpr int UNIT = 32 * ENTRIES;
constexpr int SPLIT = 16;                // units of a part of a heavy edge
constexpr int BATCH = 2;                 // lookups, and triangles, that a lane has under way at once
constexpr int PASS = 32 * BATCH;         // entries that a warp looks up in tables at once
constexpr int WANTED = UNIT + PASS;      // entries that a warp keeps to look up; as in launch.py
constexpr int MOST = UNIT > PASS ? UNIT : PASS;
constexpr int FOUND = MOST + 32 * BATCH; // triangles that a warp keeps; as in launch.py
constexpr uint32 HEAVY = 1 << 20;        // room for parts of heavy edges; as in launch.py
constexpr int FALLS = -(1 << 27);        // count of an edge falling in a round 0, 3, 6 ...; decrements are fewer than 2^26

__device__ __forceinline__ int falling_in(uint32 round) {
    return FALLS * static_cast<int>(round % 3 + 1);
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

// What a round reads and writes of the edges.
struct Fall {
    int* queue;
    uint32* tail;
    int* count;
    int now;   // count of edges that fall in this round, give or take decrements
    int next;  // and in the next one
#if BANDS
    const int* __restrict__ threshold;
    const int* __restrict__ band;
#else
    int limit;
    int near;     // an edge whose count drops below this is noted, once
    int* noted;
    uint32* notes;
    bool silent;  // nothing is noted, and nothing falls in the next round: the caller looks at all counts after this one
#endif
};

enum State { STANDS, FALLS_NOW, FELL };

__device__ __forceinline__ State state_of(const Fall& fall, int count) {
    if (count >= 0) return STANDS;
    constexpr int NEAR = -FALLS / 2;
    if (abs(count - fall.now) < NEAR) return FALLS_NOW;
    return abs(count - fall.next) < NEAR ? STANDS : FELL;
}

// What follows from taking one from the count of an edge, which was `before`.
__device__ __forceinline__ void take_note(const Fall& fall, int edge, int before) {
#if BANDS
    const int limit = fall.threshold[fall.band[edge]];
#else
    const int limit = fall.limit;
#endif
    if (before == limit) {
        atomicAdd(&fall.count[edge], fall.next - (limit - 1));
        fall.queue[atomicAdd(fall.tail, 1u)] = edge;
    }
#if !BANDS
    else if (before == fall.near) fall.noted[atomicAdd(fall.notes, 1u)] = edge;
#endif
}

struct Lost {
    bool f, g;
};

// Whether f and g lose their triangle with e, which falls; their counts are given.
__device__ __forceinline__ Lost who_loses(const Fall& fall, int e, int f, int g, int count_f, int count_g) {
    const State state_f = state_of(fall, count_f), state_g = state_of(fall, count_g);
    const bool f_here = state_f == STANDS || (state_f == FALLS_NOW && e < f);
    const bool g_here = state_g == STANDS || (state_g == FALLS_NOW && e < g);
#if BANDS
    const int here = fall.band[e], band_f = fall.band[f], band_g = fall.band[g];
    const bool f_stands = band_f > here || (band_f == here && f_here), g_stands = band_g > here || (band_g == here && g_here);
    return {band_f == here && state_f == STANDS && g_stands, band_g == here && state_g == STANDS && f_stands};
#else
    return {state_f == STANDS && g_here, state_g == STANDS && f_here};
#endif
}

// What one warp has taken: edges, their rows, where the units of each start; what it has to look up, and the triangles it
// has found.
struct Work {
    Row shorter[CHUNK];
    Row longer[CHUNK];
    int edge[CHUNK];
    int unit[CHUNK];
    int2 wanted[WANTED];  // entries of shorter rows, which may be in the longer ones
    int place[WANTED];    // and whose edge they are of
    int e[FOUND];
    int f[FOUND];
    int g[FOUND];
};

// A warp lowers counts for the triangles it has found, BATCH a lane under way at once.
__device__ __forceinline__ void settle(const Work& work, int found, const Fall& fall) {
    __syncwarp();
    for (int base = 0; base < found; base += 32 * BATCH) {
        int f[BATCH], g[BATCH], count_f[BATCH], count_g[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int h = base + k * 32 + (threadIdx.x & 31);
            f[k] = h < found ? work.f[h] : -1;
            g[k] = h < found ? work.g[h] : -1;
            count_f[k] = h < found ? __ldcg(&fall.count[f[k]]) : 0;
            count_g[k] = h < found ? __ldcg(&fall.count[g[k]]) : 0;
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] < 0) continue;
            const int h = base + k * 32 + (threadIdx.x & 31);
            const Lost lost = who_loses(fall, work.e[h], f[k], g[k], count_f[k], count_g[k]);
            if (!lost.f) f[k] = -1;
            if (!lost.g) g[k] = -1;
        }
#if !BANDS
        if (fall.silent) {  // atomics that give nothing back
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                if (f[k] >= 0) atomicSub(&fall.count[f[k]], 1);
                if (g[k] >= 0) atomicSub(&fall.count[g[k]], 1);
            }
            continue;
        }
#endif
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) count_f[k] = atomicSub(&fall.count[f[k]], 1);
            if (g[k] >= 0) count_g[k] = atomicSub(&fall.count[g[k]], 1);
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) take_note(fall, f[k], count_f[k]);
            if (g[k] >= 0) take_note(fall, g[k], count_g[k]);
        }
    }
    __syncwarp();
}

// One lane looks up the rows of an edge; gives the units of the shorter one.
__device__ __forceinline__ int look_up(Work& work, int place, int edge, const Graph& graph) {
    const Ends ends = ends_of(graph.begin, graph.length, graph.bucket, graph.low[edge], graph.high[edge]);
    work.edge[place] = edge;
    work.shorter[place] = ends.shorter;
    work.longer[place] = ends.longer;
    return (ends.shorter.length + UNIT - 1) / UNIT;
}

// How much a warp keeps.
struct Kept {
    int wanted;
    int found;
};

// A warp keeps a triangle for each lane that gives its second edge.
__device__ __forceinline__ void keep(Work& work, Kept& kept, int e, int f, int g) {
    const uint32 hit = __ballot_sync(ALL_LANES, g >= 0);
    if (g >= 0) {
        const int at = kept.found + __popc(hit & ((1u << (threadIdx.x & 31)) - 1));
        work.e[at] = e;
        work.f[at] = f;
        work.g[at] = g;
    }
    kept.found += __popc(hit);
}

// A warp looks up the last of the entries that it keeps, PASS at most, in the tables of the longer rows.
__device__ __forceinline__ void search(Work& work, Kept& kept, const Graph& graph, const Fall& fall) {
    __syncwarp();
    const int lane = threadIdx.x & 31, base = max(kept.wanted - PASS, 0);
    int2 mine[BATCH];
    uint4 neighbours[BATCH], edges[BATCH];
    int place[BATCH];
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        const int h = base + k * 32 + lane;
        place[k] = h < kept.wanted ? work.place[h] : -1;
        if (place[k] < 0) continue;
        mine[k] = work.wanted[h];
        const Row& longer = work.longer[place[k]];
        // Hardly any bucket is read again soon: it shall not drive what is out of the L2 cache.
        const Bucket* home = &graph.table[longer.bucket + home_of(mine[k].x, longer.buckets)];
        neighbours[k] = __ldcs(&home->neighbour);
        edges[k] = __ldcs(&home->edge);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        int edge = place[k] < 0 ? -1 : edge_in(neighbours[k], edges[k], mine[k].x);
        if (place[k] >= 0 && edge < 0 && neighbours[k].w != EMPTY) {
            const Row& longer = work.longer[place[k]];
            edge = find_in_table(longer, graph.table, mine[k].x, home_of(mine[k].x, longer.buckets));
        }
        keep(work, kept, place[k] < 0 ? -1 : work.edge[place[k]], mine[k].y, edge);
    }
    kept.wanted = base;
    if (kept.found > FOUND - MOST) {
        settle(work, kept.found, fall);
        kept.found = 0;
    }
    __syncwarp();
}

#if !BANDS
// Drops entries, neighbour -1, whose own edge has fallen or takes the triangle itself: their counts lie together where rows ascend, so
// this spares more requests than it costs. (With bands an edge that fell may still count.)
__device__ __forceinline__ void drop_dead(int2 (&entries)[ENTRIES], int e, const Fall& fall) {
    int count[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) count[k] = entries[k].x < 0 ? GONE : __ldcg(&fall.count[entries[k].y]);
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const State state = state_of(fall, count[k]);
        if (state == FELL || (state == FALLS_NOW && entries[k].y < e)) entries[k].x = -1;
    }
}
#endif

// A warp takes UNIT entries of the shorter row: those that the filter of the longer one lets through are looked up as they
// become many.
__device__ __forceinline__ void take_unit(
    Work& work, int i, int start, Kept& kept, const Graph& graph, const Fall& fall) {
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
            keep(work, kept, work.edge[i], mine[k].y, mine[k].x < 0 ? -1 : find_in_short(longer, graph.entry, mine[k].x));
        }
        if (kept.found > FOUND - MOST) {
            settle(work, kept.found, fall);
            kept.found = 0;
        }
        return;
    }
#if !BANDS
    drop_dead(mine, work.edge[i], fall);
#endif
    uint32 filter[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const int wanted = mine[k].x;
        filter[k] = wanted < 0 ? 0 : graph.filter[bucket + home_of(wanted, buckets)] >> filter_bit(wanted) & 1;
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 pass = __ballot_sync(ALL_LANES, filter[k]);
        if (filter[k]) {
            const int at = kept.wanted + __popc(pass & ((1u << lane) - 1));
            work.wanted[at] = mine[k];
            work.place[at] = i;
        }
        kept.wanted += __popc(pass);
    }
    while (kept.wanted >= PASS) search(work, kept, graph, fall);
}

// The edges queue[first .. first + edges) are one warp's work, but for those of more than SPLIT units, whose parts go on the
// list of heavy ones while it has room.
__device__ __forceinline__ void take_chunk(
    Work& work, uint32 first, int edges, Kept& kept, int2* heavy, uint32* heavy_parts, const Graph& graph,
    const Fall& fall) {
    const int lane = threadIdx.x & 31;
    int units = 0;
    if (lane < edges) {
        const int edge = __ldcg(&fall.queue[first + lane]);
        units = look_up(work, lane, edge, graph);
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
        take_unit(work, i, (unit - work.unit[i]) * UNIT, kept, graph, fall);
    }
    while (kept.wanted) search(work, kept, graph, fall);
    __syncwarp();
}

// Every step-th unit of one edge from `first` on, as far as `stop`.
__device__ __forceinline__ void take_part(
    Work& work, int edge, int first, int stop, int step, Kept& kept, const Graph& graph, const Fall& fall) {
    int units = 0;
    if ((threadIdx.x & 31) == 0) units = look_up(work, 0, edge, graph);
    units = __shfl_sync(ALL_LANES, units, 0);
    __syncwarp();
    for (int unit = first; unit < min(units, stop); unit += step) take_unit(work, 0, unit * UNIT, kept, graph, fall);
    while (kept.wanted) search(work, kept, graph, fall);
    __syncwarp();
}

// The next run of `chunk` items: one a warp is its own, the others come from the cursor; `end` and beyond for none.
__device__ __forceinline__ uint32 next_items(uint32* cursor, uint32 chunk, uint32 end, uint32 warps) {
    if (warps * chunk >= end) return end;
    uint32 taken = 0;
    if ((threadIdx.x & 31) == 0) taken = warps * chunk + atomicAdd(cursor, chunk);
    return __shfl_sync(ALL_LANES, taken, 0);
}

// One round, up to and with the barrier after it; gives the queue's tail. `counters` are the round's own three, 0 at first:
// edges taken, heavy parts, heavy parts taken.
__device__ __forceinline__ uint32 run_round(
    Work& work, uint32 begun, uint32 end, uint32* counters, int2* heavy, Barrier* barrier, const Graph& graph,
    const Fall& fall) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 edges = end - begun;
    Kept kept = {0, 0};
    if (edges <= warps) {
        const uint32 parts = warps / edges, part = warp / edges;
        if (part < parts) {
            const int edge = __ldcg(&fall.queue[begun + warp % edges]);
            take_part(work, edge, static_cast<int>(part), 0x7FFFFFFF, static_cast<int>(parts), kept, graph, fall);
        }
        settle(work, kept.found, fall);
        return grid_barrier(barrier, fall.tail);
    }
    const uint32 chunk = max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * 8)));
    for (uint32 first = warp * chunk; first < edges; first = next_items(&counters[0], chunk, edges, warps)) {
        const int size = static_cast<int>(min(chunk, edges - first));
        take_chunk(work, begun + first, size, kept, heavy, &counters[1], graph, fall);
    }
    settle(work, kept.found, fall);
    const uint32 tail = grid_barrier(barrier, fall.tail);
    const uint32 parts = min(__ldcg(&counters[1]), HEAVY);
    if (parts == 0) return tail;
    kept.found = 0;
    for (uint32 p = warp; p < parts; p = next_items(&counters[2], 1, parts, warps)) {
        const int2 part = __ldcg(&heavy[p]);
        if (part.x >= 0) take_part(work, part.x, part.y * SPLIT, (part.y + 1) * SPLIT, 1, kept, graph, fall);
    }
    settle(work, kept.found, fall);
    return grid_barrier(barrier, fall.tail);
}
