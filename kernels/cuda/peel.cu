// Peeling, level by level: level k removes edges with at most k remaining triangles, until all edges have more than k.
// The λ of an edge is the level that removes it.
//
// Computes  levels from state[3] on, until at most `stop_at` edges remain or `max_rounds` rounds have run. Writes to state:
//           0 removed edges (the queue contains them in the order of removal), 1 rounds, 2 the last `status_of`, 3 the next
//           level, 4 levels that removed edges, 5 the number of candidates, 6 the count below which each remaining edge is a
//           candidate.
// Needs     the count of each edge is its remaining triangles, or GONE; capacity for all edges in `queue` and `candidates`; all
//           blocks run at the same time (a cooperative launch); the state of the previous launch, 0 for the first.
// Reads     at a level, the counts of the candidates (8 bytes each): the edges with fewer than NEAR triangles above the
//           level. Every NEAR levels, all counts are read and the candidates are chosen again. The same happens after a
//           round that removes more than one in MANY of the remaining edges: this is cheaper than handling each count
//           that drops. Rounds: see cascade.cuh.
#include "cascade.cuh"
#include "frontiers/grouping.cuh"
#include "frontiers/lists.cuh"

constexpr int NEAR = 16;
constexpr uint32 MANY = 64;
constexpr int NOTHING = 0x7FFFFFFF;

struct Peeling {
    int* queue;
    uint32* tail;
    int* count;
    int* candidates;
    uint32* candidate_count;
};

// Appends the candidates with at most `level` triangles to the frontier.
__device__ __forceinline__ void scan_candidates(const Peeling& peeling, int level, int code) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 size = __ldcg(peeling.candidate_count), lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < size; i += threads) {
        const int edge = i + lane < size ? __ldcg(&peeling.candidates[i + lane]) : -1;
        const int count = edge < 0 ? -1 : __ldcg(&peeling.count[edge]);
        const bool leaves = count >= 0 && count <= level;
        if (leaves) peeling.count[edge] = code;
        append(peeling.queue, peeling.tail, leaves, edge);
    }
}

// Appends all edges with at most `level` triangles to the frontier. Other edges with fewer than `level` + NEAR
// triangles become candidates. Returns the least count above the level among the edges of this warp. Edges of one row
// stay together in the queue, so that one warp processes them.
__device__ __forceinline__ int scan_all(const Peeling& peeling, uint32 edges, int level, int code) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 lane = threadIdx.x & 31;
    int least = NOTHING;
    for (uint32 i = warp * 32 * STEPS; i < edges; i += warps * 32 * STEPS) {
        uint32 leaves = 0, near = 0;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const uint32 edge = i + 32 * step + lane;
            const int count = edge < edges ? __ldcg(&peeling.count[edge]) : -1;
            if (count > level) {
                least = min(least, count);
                near |= static_cast<uint32>(count < level + NEAR) << step;
            } else if (count >= 0) {
                peeling.count[edge] = code;
                leaves |= 1u << step;
            }
        }
        append_all(peeling.queue, peeling.tail, leaves, i);
        append_all(peeling.candidates, peeling.candidate_count, near, i);
    }
    return warp_min(least);
}

constexpr uint32 HAS_FRONTIER = 1;  // the frontier has edges
constexpr uint32 HAS_EDGES = 2;  // edges remain
constexpr uint32 FEW_LEFT = 4;  // so few edges remain that the caller should renumber them

// The status after the frontier queue[begun .. end) was chosen. It is equal in all blocks.
__device__ __forceinline__ uint32 status_of(uint32 begun, uint32 end, uint32 edges, uint32 stop_at) {
    const uint32 left = edges - end;
    return (begun < end ? HAS_FRONTIER : 0) | (left ? HAS_EDGES : 0) | (left && left <= stop_at ? FEW_LEFT : 0);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) peel(
    int* queue, uint32* state, Barrier* barrier, int2* heavy, int edges, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket,
    const int2* __restrict__ entry, const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count,
    int* candidates, int* lambda, uint32 stop_at, uint32 max_rounds, int vertices, int* grouped, uint32 grouped_room, uint32* bins) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    uint32 *tail = &state[0], *candidate_count = &state[5], *least_left = &state[7];
    const Graph graph = {low, high, begin, length, bucket, entry, table, filter};
    const Peeling peeling = {queue, tail, count, candidates, candidate_count};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 lane = threadIdx.x & 31;
    uint32 begun = state[0], round = 0, levels = state[4], status = HAS_EDGES;
    int level = static_cast<int>(state[3]), near = static_cast<int>(state[6]);
    grid_barrier(barrier, tail);  // all blocks have read the state
    while ((status & HAS_EDGES) && !(status & FEW_LEFT) && round < max_rounds) {
        const bool all = near <= level;
        if (all) {
            near = level + NEAR;
            grid_barrier(barrier, tail);  // all blocks have read the values that are reset here
            if (thread == 0) *candidate_count = 0, *least_left = NOTHING;
            grid_barrier(barrier, tail);
            const int least = scan_all(peeling, edges, level, removed_in(round));
            if (lane == 0 && least < NOTHING) atomicMin(reinterpret_cast<int*>(least_left), least);
        } else {
            scan_candidates(peeling, level, removed_in(round));
        }
        if (thread < 3) state[8 + 4 * (round % 3) + thread] = 0;
        uint32 end = grid_barrier(barrier, tail);
        status = status_of(begun, end, edges, stop_at);
        if (!(status & HAS_FRONTIER)) {
            // After a scan of all edges the least count is known, and levels without edges are skipped.
            level = max(level + 1, all ? static_cast<int>(__ldcg(least_left)) : level + 1);
            continue;
        }
        ++levels;
        uint32 before = begun;
        while (status & HAS_FRONTIER) {
            for (uint32 i = before + thread; i < begun; i += threads) {
                const int edge = __ldcg(&queue[i]);
                count[edge] = GONE;
                lambda[edge] = level;
            }
            if (thread < 3) state[8 + 4 * ((round + 1) % 3) + thread] = 0;
            const bool many = end - begun > (edges - begun) / MANY;
            if (many && thread == 0) *candidate_count = 0;
            const int next = removed_in(round + 1);
            const Removal removal = {queue, tail, count, removed_in(round), next, level + 1, near, candidates, candidate_count, many};
            const int* const frontier = group_frontier(
                queue + begun, end - begun, high, vertices, {grouped, grouped_room, bins, bins + BINS}, barrier, tail);
            uint32 grown =
                run_round(work, frontier, end - begun, &state[8 + 4 * (round % 3)], heavy, barrier, graph, removal);
            if (many) {
                near = level + NEAR;
                scan_all(peeling, edges, level, next);
                grown = grid_barrier(barrier, tail);
            }
            status = status_of(end, grown, edges, stop_at);
            before = begun;
            begun = end;
            end = grown;
            ++round;
        }
        for (uint32 i = before + thread; i < end; i += threads) {
            const int edge = __ldcg(&queue[i]);
            count[edge] = GONE;
            lambda[edge] = level;
        }
        ++level;
    }
    grid_barrier(barrier, tail);
    if (thread == 0) {
        state[1] = round;
        state[2] = status;
        state[3] = static_cast<uint32>(level);
        state[4] = levels;
        state[6] = static_cast<uint32>(near);
    }
}
