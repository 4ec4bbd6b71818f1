// One round of a shard: the edges that leave, known to all shards, take their triangles with a third vertex of the own class along.
//
// Both other edges of such a triangle have a half here, beside the entries that lead to its third vertex: both counts are lowered
// here, and no other shard removes the triangle. So a shard does what cascade.cuh does, on rows cut by the third vertex.
//
// Threads   a warp takes up to CHUNK edges at a time. The parts of rows that a shard has are short, so the entries of the shorter rows
//           of all these edges are laid end to end, and each lane takes every 32nd. Edges of many entries are left to all warps. Where
//           there are fewer edges than warps each edge is shared out from the start.
// Reads     for each edge two rows (16 bytes each); 8 bytes an entry and the half (4) of its edge; if that stands, the filter (2) of
//           the longer row, and the bucket (32) where the filter lets it through; for each triangle two halves, which it lowers.
// Ties      of two edges {x, y} and {x, w} of one triangle that leave together the one with the lower of y and w takes it: all shards
//           know that. It is the order of the edges by their ends; as in PKT (Kabir and Madduri, HPEC 2017).
#pragma once
#include "lists.cuh"
#include "shard_count.cuh"
#include "shard_mail.cuh"
#include "shard_rows.cuh"

#ifndef WARPS
#define WARPS 16  // of a block; as in shards.py
#endif

constexpr int BLOCKS = 32 / WARPS;       // of a multiprocessor
constexpr int CHUNK = 32;                // most edges that a warp takes at a time; as in shards.py
constexpr int SHARES = 4;                // chunks for each warp, or more
constexpr int ENTRIES = 4;               // entries of rows that a lane has under way at once
constexpr int UNIT = 32 * ENTRIES;
constexpr uint32 PART = 16 * UNIT;       // entries of a part of a heavy edge
constexpr int BATCH = 2;                 // lookups, and triangles, that a lane has under way at once
constexpr int PASS = 32 * BATCH;         // entries that a warp looks up in tables at once
constexpr int WANTED = UNIT + PASS;      // entries that a warp keeps to look up; as in shards.py
constexpr int FOUND = 2 * PASS;          // triangles that a warp keeps; as in shards.py
constexpr uint32 HEAVY = 1 << 20;        // room for parts of heavy edges; as in shards.py
constexpr uint32 LATER = 1u << 31;       // of a half of a triangle: its edge comes after the one that leaves

struct Lists {
    int* queue;  // edges that leave at this level, all that did since the launch
    uint32* queued;
    int* noted;  // edges that may leave in this window
    uint32* notes;
    int* event;  // halves that have something to tell: a ring
    uint32* events;
    uint32 room;  // of the ring
};

struct Limits {
    int level;
    int last;     // of the window
    bool silent;  // nothing follows from a decrement: the caller looks at all halves after this round
};

// The edges of a round, which all shards know.
struct Departing {
    const uint2* edge;
    uint32 edges;
};

// What a block has in shared memory to work on a round: fewer registers than arguments. What is used for each entry comes as an
// argument of the kernel all the same.
struct Round {
    Rows rows;
    Cut cut;
    int* count;
    Lists lists;
    Limits limits;
};

__device__ __forceinline__ int alarm_of(const Limits& limits) {
    return limits.last >> 1;
}

__device__ __forceinline__ void tell(const Lists& lists, int half) {
    lists.event[room_for_one(lists.events) % lists.room] = half;
}

// What follows from taking one from a half, which was `before`.
__device__ __forceinline__ void take_note(const Round& round, int half, int before) {
    const Lists& lists = round.lists;
    const int role = role_of(before);
    if (role == OWN || role == KEEPER) {
        const int left = before - role * ROLE - 1;
        if (left == round.limits.level) {
            atomicAdd(&round.count[half], counted(QUEUED, 0) - counted(role, left));
            lists.queue[room_for_one(lists.queued)] = half;
        } else if (left == round.limits.last) {
            lists.noted[room_for_one(lists.notes)] = half;
        }
    } else if (before == counted(SPLIT, alarm_of(round.limits) + 1) || before == counted(REPORTER, 0)) {
        tell(lists, half);
    }
}

// What one warp has taken: of each edge where its entries begin, less what comes before them, its longer row, and the numbers below
// which third vertices make the edge in the shorter and in the longer row the later one; what it has to look up; and triangles.
struct Work {
    uint32 from[CHUNK];
    uint32 longer[CHUNK];
    uint32 length[CHUNK];
    uint32 buckets[CHUNK];
    uint2 later[CHUNK];
    int2 wanted[WANTED];
    uint2 found[FOUND];
    unsigned char place[WANTED];
    uint32 triangles[32];  // removed by each lane
    unsigned long long entries;  // read
};

// How much a warp keeps.
struct Kept {
    int wanted;
    int found;
};

// A warp lowers counts for the triangles it has found, BATCH a lane under way at once.
__device__ __forceinline__ void settle(
    Work& work, int found, int* count, const Round& round) {
    uint32 triangles = 0;
    __syncwarp();
    for (int base = 0; base < found; base += PASS) {
        int f[BATCH], g[BATCH], count_f[BATCH], count_g[BATCH];
        uint2 pair[BATCH];
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            const int h = base + k * 32 + (threadIdx.x & 31);
            pair[k] = h < found ? work.found[h] : make_uint2(0, 0);
            f[k] = h < found ? static_cast<int>(pair[k].x & ~LATER) : -1;
            g[k] = h < found ? static_cast<int>(pair[k].y & ~LATER) : -1;
            count_f[k] = h < found ? __ldcg(&count[f[k]]) : 0;
            count_g[k] = h < found ? __ldcg(&count[g[k]]) : 0;
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] < 0) continue;
            const bool f_stands = stands(count_f[k]), g_stands = stands(count_g[k]);
            const bool taken = (f_stands || (leaves(count_f[k]) && (pair[k].x & LATER))) &&
                               (g_stands || (leaves(count_g[k]) && (pair[k].y & LATER)));
            triangles += taken;
            if (!taken || !f_stands) f[k] = -1;
            if (!taken || !g_stands) g[k] = -1;
        }
        if (round.limits.silent) {  // atomics that give nothing back
#pragma unroll
            for (int k = 0; k < BATCH; ++k) {
                if (f[k] >= 0) atomicSub(&count[f[k]], 1);
                if (g[k] >= 0) atomicSub(&count[g[k]], 1);
            }
            continue;
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) count_f[k] = atomicSub(&count[f[k]], 1);
            if (g[k] >= 0) count_g[k] = atomicSub(&count[g[k]], 1);
        }
#pragma unroll
        for (int k = 0; k < BATCH; ++k) {
            if (f[k] >= 0) take_note(round, f[k], count_f[k]);
            if (g[k] >= 0) take_note(round, g[k], count_g[k]);
        }
    }
    work.triangles[threadIdx.x & 31] += triangles;
    __syncwarp();
}

// A warp looks up the last of the entries that it keeps, PASS at most, in the longer rows.
__device__ __forceinline__ void search(
    Work& work, Kept& kept, const Rows& rows, int* count, const Round& round) {
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
        const uint32 buckets = work.buckets[place[k]];
        if (!buckets) continue;
        // Hardly any bucket is read again soon: it shall not drive what is out of the L2 cache.
        const Bucket* home = &rows.table[(work.longer[place[k]] >> 1) + home_of(mine[k].x, buckets)];
        neighbours[k] = __ldcs(&home->neighbour);
        edges[k] = __ldcs(&home->edge);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        int other = -1;
        uint2 later = make_uint2(0, 0);
        if (place[k] >= 0) {
            const uint32 buckets = work.buckets[place[k]], begin = work.longer[place[k]];
            const Row longer = {begin, begin >> 1, static_cast<int>(work.length[place[k]]), buckets};
            if (!buckets) {
                other = find_in_short(longer, rows.entry, mine[k].x);
            } else {
                other = edge_in(neighbours[k], edges[k], mine[k].x);
                if (other < 0 && neighbours[k].w != EMPTY) {
                    other = find_in_table(longer, rows.table, mine[k].x, home_of(mine[k].x, buckets));
                }
            }
            later = work.later[place[k]];
        }
        const uint32 hit = __ballot_sync(ALL_LANES, other >= 0);
        if (other >= 0) {
            const uint32 number = static_cast<uint32>(mine[k].x);
            work.found[kept.found + __popc(hit & ((1u << lane) - 1))] =
                make_uint2(mine[k].y | (number < later.x ? LATER : 0), other | (number < later.y ? LATER : 0));
        }
        kept.found += __popc(hit);
    }
    kept.wanted = base;
    if (kept.found > FOUND - PASS) {
        settle(work, kept.found, count, round);
        kept.found = 0;
    }
    __syncwarp();
}

// A warp takes UNIT entries from `base` on of the `all` of its edges; this lane's edge, if `has`, has its first at `start`. Entries
// whose own edge has left, or takes the triangle itself, are dropped: their halves lie together where rows ascend, so this spares
// more requests than it costs. Those that the filter of the longer row lets through are looked up as they become many.
__device__ __forceinline__ void take_unit(
    Work& work, uint32 base, uint32 all, bool has, uint32 start, Kept& kept, const Rows& rows, int* count,
    const Round& round) {
    const int lane = threadIdx.x & 31;
    int2 mine[ENTRIES];
    int place[ENTRIES], half[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 window = base + 32 * k, at = window + lane;
        const uint32 before = __ballot_sync(ALL_LANES, has && start < window);
        const uint32 bits = warp_or(has && start - window < 32 ? 1u << (start - window) : 0);
        place[k] = __popc(before) + __popc(bits << (31 - lane)) - 1;
        mine[k] = at < all ? rows.entry[work.from[place[k]] + at] : make_int2(0, -1);
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) half[k] = mine[k].y < 0 ? counted(LEFT, 0) : __ldcg(&count[mine[k].y]);
    bool passes[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        passes[k] = stands(half[k]) || (leaves(half[k]) && static_cast<uint32>(mine[k].x) < work.later[place[k]].x);
        const uint32 buckets = passes[k] ? work.buckets[place[k]] : 0;
        if (buckets) {
            const uint32 home = (work.longer[place[k]] >> 1) + home_of(mine[k].x, buckets);
            passes[k] = rows.filter[home] >> filter_bit(mine[k].x) & 1;
        }
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 pass = __ballot_sync(ALL_LANES, passes[k]);
        if (passes[k]) {
            const int to = kept.wanted + __popc(pass & ((1u << lane) - 1));
            work.wanted[to] = mine[k];
            work.place[to] = static_cast<unsigned char>(place[k]);
        }
        kept.wanted += __popc(pass);
    }
    while (kept.wanted >= PASS) search(work, kept, rows, count, round);
}

// What a lane brings: the rows of an edge, of the shorter one the entries from `from` on, `size` of them.
struct Span {
    uint32 from;
    uint32 size;
    Row longer;
    uint2 later;
};

__device__ __forceinline__ Span look_up(uint2 ends, const Rows& rows, const Cut& cut) {
    const Row one = unpack(rows.row[ends.x]), other = unpack(rows.row[ends.y]);
    const bool swap = one.length > other.length;
    const uint32 of_one = first_below(cut, ends.x), of_other = first_below(cut, ends.y);
    const Row& shorter = swap ? other : one;
    return {
        static_cast<uint32>(shorter.begin), static_cast<uint32>(shorter.length), swap ? one : other,
        swap ? make_uint2(of_one, of_other) : make_uint2(of_other, of_one)};
}

// A warp takes the spans of its lanes.
__device__ __forceinline__ void take_spans(
    Work& work, const Span& span, Kept& kept, const Rows& rows, int* count, const Round& round) {
    const int lane = threadIdx.x & 31;
    const bool has = span.size > 0;
    const uint32 sum = sum_up_to(span.size);
    const uint32 start = sum - span.size, all = __shfl_sync(ALL_LANES, sum, 31);
    const uint32 busy = __ballot_sync(ALL_LANES, has);
    if (has) {
        const int place = __popc(busy & ((1u << lane) - 1));
        work.from[place] = span.from - start;
        work.longer[place] = static_cast<uint32>(span.longer.begin);
        work.length[place] = span.longer.length;
        work.buckets[place] = span.longer.buckets;
        work.later[place] = span.later;
    }
    if (lane == 0) work.entries += all;
    __syncwarp();
    for (uint32 base = 0; base < all; base += UNIT) take_unit(work, base, all, has, start, kept, rows, count, round);
    while (kept.wanted) search(work, kept, rows, count, round);
    __syncwarp();
}

// One lane's span is a part of an edge's entries, from `first` on.
__device__ __forceinline__ Span part_of(Span span, uint32 first, uint32 size) {
    span.from += first;
    span.size = first < span.size ? min(size, span.size - first) : 0;
    return span;
}

// How the edges of a round, or the heavy parts, go to warps.
struct Share {
    uint32 items;
    uint32 chunk;  // items that a warp takes at a time; 0 where each edge is shared out to several
    uint32* cursor;
};

// What this lane has of the items from `first` on.
__device__ __noinline__ Span span_at(
    const Round& round, const Departing& departing, const Share& share, bool parts, uint32 first, uint2* heavy, uint32* heavy_parts) {
    const uint32 lane = threadIdx.x & 31, warps = (gridDim.x * blockDim.x) >> 5;
    const Span nothing = {0, 0, {0, 0, 0, 0}, {0, 0}};
    if (share.chunk == 0) {
        if (lane) return nothing;
        const Span span = look_up(__ldcg(&departing.edge[first % share.items]), round.rows, round.cut);
        const uint32 teams = warps / share.items, size = ((span.size + UNIT - 1) / UNIT + teams - 1) / teams * UNIT;
        return part_of(span, first / share.items * size, size);
    }
    const uint32 item = first + lane;
    if (lane >= share.chunk || item >= share.items) return nothing;
    if (parts) {
        const uint2 part = __ldcg(&heavy[item]);
        if (part.x == EMPTY) return nothing;
        return part_of(look_up(__ldcg(&departing.edge[part.x]), round.rows, round.cut), part.y * PART, PART);
    }
    Span span = look_up(__ldcg(&departing.edge[item]), round.rows, round.cut);
    if (span.size > PART) {
        const uint32 count = (span.size + PART - 1) / PART, at = atomicAdd(heavy_parts, count);
        const bool fits = at + count <= HEAVY;
        for (uint32 p = 0; p < count && at + p < HEAVY; ++p) heavy[at + p] = make_uint2(fits ? item : EMPTY, p);
        if (fits) span.size = 0;
    }
    return span;
}

// The next run of items: one a warp is its own, the others come from the cursor; `items` and beyond for none.
__device__ __forceinline__ uint32 next_items(const Share& share, uint32 warps) {
    if (share.chunk == 0 || warps * share.chunk >= share.items) return share.items;
    uint32 taken = 0;
    if ((threadIdx.x & 31) == 0) taken = warps * share.chunk + atomicAdd(share.cursor, share.chunk);
    return __shfl_sync(ALL_LANES, taken, 0);
}

// One round, up to and with the barrier after it. `counters`, 0 at first: edges taken, heavy parts, heavy parts taken.
__device__ __forceinline__ void run_round(
    Work& work, const Rows& rows, int* count, const Round& round, const Departing& departing, uint32* counters, uint2* heavy,
    Gate& gate) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 edges = departing.edges;
    Share share = {edges, edges <= warps ? 0 : max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * SHARES))), &counters[0]};
    for (bool parts = false; true; parts = true) {
        Kept kept = {0, 0};
        uint32 first = share.chunk ? warp * share.chunk : warp < warps / edges * edges ? warp : EMPTY;
        // One place for all kinds of work: it is long, and stays in registers.
        for (bool more = first < share.items || (share.chunk == 0 && first != EMPTY); more; more = first < share.items) {
            take_spans(work, span_at(round, departing, share, parts, first, heavy, &counters[1]), kept, rows, count, round);
            first = next_items(share, warps);
        }
        settle(work, kept.found, count, round);
        pass(gate);
        if (parts || share.chunk == 0) return;
        share = {min(__ldcg(&counters[1]), HEAVY), 1, &counters[2]};
        if (share.items == 0) return;
    }
}
