// One round of a shard. All shards know the edges of the round; this shard removes their triangles whose third vertex is in its class.
//
// The shard has halves of both other edges of such a triangle, in the entries that lead to its third vertex. It lowers both counts,
// and no other shard removes the triangle. The algorithm is that of cascade.cuh, on rows cut by the third vertex.
//
// Threads   A warp processes up to CHUNK edges at a time. Rows of a shard are short, so the entries of the shorter rows of all these
//           edges are concatenated, and each lane processes every 32nd entry. An edge with many entries is split into parts for
//           all warps. In a round with fewer edges than warps each edge is split from the start.
// Reads     for each edge two rows (16 bytes each); 8 bytes an entry and the half (4) of its edge; if that edge remains, the filter
//           (2) of the longer row, and the bucket (32) if the filter's bit is set; for each triangle two halves, which are lowered.
// Ties      If two edges {x, y} and {x, w} of a triangle are removed in one round, the edge with the lower of y and w removes the
//           triangle. All shards can compute this: it is the order of the edges by their ends. As in PKT (Kabir and Madduri, HPEC
//           2017).
#pragma once
#include "frontiers/lists.cuh"
#include "shards/count.cuh"
#include "shards/mail.cuh"
#include "shards/rows.cuh"

constexpr int BLOCKS = 32 / WARPS;  // of a multiprocessor
constexpr int CHUNK = 32;  // most edges that a warp processes at a time
constexpr int SHARES = 4;  // least number of chunks for each warp
constexpr int ENTRIES = 4;  // entries of rows that a lane loads at once
constexpr int UNIT = 32 * ENTRIES;
constexpr uint32 PART = 16 * UNIT;  // entries of a part of a heavy edge
constexpr int BATCH = 2;  // lookups, and triangles, that a lane processes at once
constexpr int PASS = 32 * BATCH;  // entries that a warp looks up at once
constexpr int LOOKUPS = UNIT + PASS;  // capacity of a warp's list of pending lookups
constexpr int TRIANGLES = 2 * PASS;  // capacity of a warp's list of found triangles
constexpr uint32 HEAVY = HEAVY_PARTS;  // capacity of the list of heavy parts
constexpr uint32 LATER = 1u << 31;  // flag of a half: its edge follows the removed edge in the order of edges

struct Lists {
    int* queue;  // all edges to remove since the launch; the edges of this level are the last
    uint32* queued;
    int* candidates;  // edges that may be removed in this window
    uint32* candidate_count;
    int* events;  // halves with an event: a ring
    uint32* event_count;
    uint32 room;  // capacity of the ring
};

struct Limits {
    int level;
    int last;  // last level of the window
    bool silent;  // decrements have no consequences: the caller scans all halves after this round
};

// The removed edges of a round, which all shards know.
struct RemovedEdges {
    const uint2* edge;
    uint32 edges;
};

// The data of a block in a round. It is in shared memory, which saves registers. Data that is used for each entry is
// also a parameter of the kernel.
struct Round {
    Rows rows;
    Cut cut;
    int* count;
    Lists lists;
    Limits limits;
};

__device__ __forceinline__ int alarm_limit(const Limits& limits) {
    return limits.last >> 1;
}

__device__ __forceinline__ void add_event(const Lists& lists, int half) {
    lists.events[reserve_slot(lists.event_count) % lists.room] = half;
}

// Adds an edge to the queue or to the candidates, or adds an event, after a decrement of a half, which was `before`.
__device__ __forceinline__ void after_decrement(const Round& round, int half, int before) {
    const Lists& lists = round.lists;
    const int role = role_of(before);
    if (role == OWN || role == KEEPER) {
        const int left = before - role * ROLE - 1;
        if (left == round.limits.level) {
            atomicAdd(&round.count[half], counted(QUEUED, 0) - counted(role, left));
            lists.queue[reserve_slot(lists.queued)] = half;
        } else if (left == round.limits.last) {
            lists.candidates[reserve_slot(lists.candidate_count)] = half;
        }
    } else if (before == counted(SPLIT, alarm_limit(round.limits) + 1) || before == counted(REPORTER, 0)) {
        add_event(lists, half);
    }
}

// Shared memory of one warp. For each edge: the start of the entries of its shorter row, less the number of entries of
// the edges before it; its longer row; and `later`. `later.x` is a bound for numbers of third vertices: below it, the
// edge in the shorter row follows the removed edge in the order of edges. `later.y` is the bound for the edge in the
// longer row. Then pending lookups and found triangles.
struct Work {
    uint32 from[CHUNK];
    uint32 longer[CHUNK];
    uint32 length[CHUNK];
    uint32 buckets[CHUNK];
    uint2 later[CHUNK];
    int2 lookup[LOOKUPS];
    uint2 found[TRIANGLES];
    unsigned char slot[LOOKUPS];
    uint32 triangles[32];  // number removed by each lane
    unsigned long long entries;  // number of entries read
};
static_assert(sizeof(Work) == WORK_BYTES, "the shared memory that Python reserves for each warp");

// Lengths of a warp's lists.
struct Pending {
    int lookups;
    int triangles;
};

// A warp lowers the counts for its found triangles, BATCH a lane at once.
__device__ __forceinline__ void lower_counts(
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
            const bool f_remains = remains(count_f[k]), g_remains = remains(count_g[k]);
            const bool taken = (f_remains || (is_leaving(count_f[k]) && (pair[k].x & LATER))) &&
                               (g_remains || (is_leaving(count_g[k]) && (pair[k].y & LATER)));
            triangles += taken;
            if (!taken || !f_remains) f[k] = -1;
            if (!taken || !g_remains) g[k] = -1;
        }
        if (round.limits.silent) {  // atomics without a result
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
            if (f[k] >= 0) after_decrement(round, f[k], count_f[k]);
            if (g[k] >= 0) after_decrement(round, g[k], count_g[k]);
        }
    }
    work.triangles[threadIdx.x & 31] += triangles;
    __syncwarp();
}

// A warp performs the last of its pending lookups, at most PASS, in the longer rows.
__device__ __forceinline__ void run_lookups(
    Work& work, Pending& pending, const Rows& rows, int* count, const Round& round) {
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
        const uint32 buckets = work.buckets[slot[k]];
        if (!buckets) continue;
        // Few buckets are read again soon: a streaming load keeps them from evicting other data from the L2 cache.
        const Bucket* home = &rows.table[(work.longer[slot[k]] >> 1) + home_of(mine[k].x, buckets)];
        neighbours[k] = __ldcs(&home->neighbour);
        edges[k] = __ldcs(&home->edge);
    }
#pragma unroll
    for (int k = 0; k < BATCH; ++k) {
        int other = -1;
        uint2 later = make_uint2(0, 0);
        if (slot[k] >= 0) {
            const uint32 buckets = work.buckets[slot[k]], begin = work.longer[slot[k]];
            const Row longer = {begin, begin >> 1, static_cast<int>(work.length[slot[k]]), buckets};
            if (!buckets) {
                other = find_in_short(longer, rows.entry, mine[k].x);
            } else {
                other = edge_in(neighbours[k], edges[k], mine[k].x);
                if (other < 0 && neighbours[k].w != EMPTY) {
                    other = find_in_table(longer, rows.table, mine[k].x, home_of(mine[k].x, buckets));
                }
            }
            later = work.later[slot[k]];
        }
        const uint32 hit = __ballot_sync(ALL_LANES, other >= 0);
        if (other >= 0) {
            const uint32 number = static_cast<uint32>(mine[k].x);
            work.found[pending.triangles + __popc(hit & ((1u << lane) - 1))] =
                make_uint2(mine[k].y | (number < later.x ? LATER : 0), other | (number < later.y ? LATER : 0));
        }
        pending.triangles += __popc(hit);
    }
    pending.lookups = base;
    if (pending.triangles > TRIANGLES - PASS) {
        lower_counts(work, pending.triangles, count, round);
        pending.triangles = 0;
    }
    __syncwarp();
}

// A warp processes UNIT entries from `base` on, of the `all` entries of its edges. The edge of this lane, if `has`, has
// its first entry at `start`. Entries whose own edge is removed, or removes the triangle itself, are dropped: the
// halves of a row that ascends are close together, so this saves more requests than it costs. Entries that pass the
// filter of the longer row become pending lookups. The warp runs lookups whenever at least PASS are pending.
__device__ __forceinline__ void process_unit(
    Work& work, uint32 base, uint32 all, bool has, uint32 start, Pending& pending, const Rows& rows, int* count,
    const Round& round) {
    const int lane = threadIdx.x & 31;
    int2 mine[ENTRIES];
    int slot[ENTRIES], half[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 window = base + 32 * k, at = window + lane;
        const uint32 before = __ballot_sync(ALL_LANES, has && start < window);
        const uint32 bits = warp_or(has && start - window < 32 ? 1u << (start - window) : 0);
        slot[k] = __popc(before) + __popc(bits << (31 - lane)) - 1;
        mine[k] = at < all ? rows.entry[work.from[slot[k]] + at] : make_int2(0, -1);
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) half[k] = mine[k].y < 0 ? counted(LEFT, 0) : __ldcg(&count[mine[k].y]);
    bool passes[ENTRIES];
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        passes[k] = remains(half[k]) || (is_leaving(half[k]) && static_cast<uint32>(mine[k].x) < work.later[slot[k]].x);
        const uint32 buckets = passes[k] ? work.buckets[slot[k]] : 0;
        if (buckets) {
            const uint32 home = (work.longer[slot[k]] >> 1) + home_of(mine[k].x, buckets);
            passes[k] = rows.filter[home] >> filter_bit(mine[k].x) & 1;
        }
    }
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 pass = __ballot_sync(ALL_LANES, passes[k]);
        if (passes[k]) {
            const int to = pending.lookups + __popc(pass & ((1u << lane) - 1));
            work.lookup[to] = mine[k];
            work.slot[to] = static_cast<unsigned char>(slot[k]);
        }
        pending.lookups += __popc(pass);
    }
    while (pending.lookups >= PASS) run_lookups(work, pending, rows, count, round);
}

// The work of a lane: the rows of an edge, and `size` entries of the shorter row from `from` on.
struct Span {
    uint32 from;
    uint32 size;
    Row longer;
    uint2 later;
};

__device__ __forceinline__ Span load_rows(uint2 ends, const Rows& rows, const Cut& cut) {
    const Row one = unpack(rows.row[ends.x]), other = unpack(rows.row[ends.y]);
    const bool swap = one.length > other.length;
    const uint32 of_one = first_below(cut, ends.x), of_other = first_below(cut, ends.y);
    const Row& shorter = swap ? other : one;
    return {
        static_cast<uint32>(shorter.begin), static_cast<uint32>(shorter.length), swap ? one : other,
        swap ? make_uint2(of_one, of_other) : make_uint2(of_other, of_one)};
}

// A warp processes the spans of its lanes.
__device__ __forceinline__ void process_spans(
    Work& work, const Span& span, Pending& pending, const Rows& rows, int* count, const Round& round) {
    const int lane = threadIdx.x & 31;
    const bool has = span.size > 0;
    const uint32 sum = sum_up_to(span.size);
    const uint32 start = sum - span.size, all = __shfl_sync(ALL_LANES, sum, 31);
    const uint32 busy = __ballot_sync(ALL_LANES, has);
    if (has) {
        const int slot = __popc(busy & ((1u << lane) - 1));
        work.from[slot] = span.from - start;
        work.longer[slot] = static_cast<uint32>(span.longer.begin);
        work.length[slot] = span.longer.length;
        work.buckets[slot] = span.longer.buckets;
        work.later[slot] = span.later;
    }
    if (lane == 0) work.entries += all;
    __syncwarp();
    for (uint32 base = 0; base < all; base += UNIT) process_unit(work, base, all, has, start, pending, rows, count, round);
    while (pending.lookups) run_lookups(work, pending, rows, count, round);
    __syncwarp();
}

// The part of a span from entry `first` on, with at most `size` entries.
__device__ __forceinline__ Span part_of(Span span, uint32 first, uint32 size) {
    span.from += first;
    span.size = first < span.size ? min(size, span.size - first) : 0;
    return span;
}

// How the edges of a round, or the heavy parts, are distributed to warps.
struct Share {
    uint32 items;
    uint32 chunk;  // items that a warp processes at a time; 0 if several warps share each edge
    uint32* cursor;
};

// The span of this lane in the items from `first` on.
__device__ __noinline__ Span span_at(
    const Round& round, const RemovedEdges& removed, const Share& share, bool parts, uint32 first, uint2* heavy, uint32* heavy_parts) {
    const uint32 lane = threadIdx.x & 31, warps = (gridDim.x * blockDim.x) >> 5;
    const Span nothing = {0, 0, {0, 0, 0, 0}, {0, 0}};
    if (share.chunk == 0) {
        if (lane) return nothing;
        const Span span = load_rows(__ldcg(&removed.edge[first % share.items]), round.rows, round.cut);
        const uint32 teams = warps / share.items, size = ((span.size + UNIT - 1) / UNIT + teams - 1) / teams * UNIT;
        return part_of(span, first / share.items * size, size);
    }
    const uint32 item = first + lane;
    if (lane >= share.chunk || item >= share.items) return nothing;
    if (parts) {
        const uint2 part = __ldcg(&heavy[item]);
        if (part.x == EMPTY) return nothing;
        return part_of(load_rows(__ldcg(&removed.edge[part.x]), round.rows, round.cut), part.y * PART, PART);
    }
    Span span = load_rows(__ldcg(&removed.edge[item]), round.rows, round.cut);
    if (span.size > PART) {
        const uint32 count = (span.size + PART - 1) / PART, at = atomicAdd(heavy_parts, count);
        const bool fits = at + count <= HEAVY;
        for (uint32 p = 0; p < count && at + p < HEAVY; ++p) heavy[at + p] = make_uint2(fits ? item : EMPTY, p);
        if (fits) span.size = 0;
    }
    return span;
}

// The first of the next items of a warp, >= `items` if no items are left. The warp's number gives its first chunk, the
// cursor gives further chunks.
__device__ __forceinline__ uint32 next_items(const Share& share, uint32 warps) {
    if (share.chunk == 0 || warps * share.chunk >= share.items) return share.items;
    uint32 taken = 0;
    if ((threadIdx.x & 31) == 0) taken = warps * share.chunk + atomicAdd(share.cursor, share.chunk);
    return __shfl_sync(ALL_LANES, taken, 0);
}

// Runs one round and the barrier after it. `counters` are 0 at the start: edges processed, heavy parts, heavy parts
// processed.
__device__ __forceinline__ void run_round(
    Work& work, const Rows& rows, int* count, const Round& round, const RemovedEdges& removed, uint32* counters, uint2* heavy,
    GridBarrier& grid) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 edges = removed.edges;
    Share share = {edges, edges <= warps ? 0 : max(1u, min(static_cast<uint32>(CHUNK), edges / (warps * SHARES))), &counters[0]};
    for (bool parts = false; true; parts = true) {
        Pending pending = {0, 0};
        uint32 first = share.chunk ? warp * share.chunk : warp < warps / edges * edges ? warp : EMPTY;
        // One call for all kinds of work: its code is long, and its state stays in registers.
        for (bool more = first < share.items || (share.chunk == 0 && first != EMPTY); more; more = first < share.items) {
            process_spans(work, span_at(round, removed, share, parts, first, heavy, &counters[1]), pending, rows, count, round);
            first = next_items(share, warps);
        }
        lower_counts(work, pending.triangles, count, round);
        pass_barrier(grid);
        if (parts || share.chunk == 0) return;
        share = {min(__ldcg(&counters[1]), HEAVY), 1, &counters[2]};
        if (share.items == 0) return;
    }
}
