// Peeling, level by level: at level k every edge with at most k triangles left falls with λ = k, and all that falls with it.
//
// Computes  levels from state[3] on, until no more than `stop_at` edges are left or `most_rounds` rounds have run. Leaves in
//           state: 0 edges fallen (they stand in the queue in the order of their fall), 1 rounds, 2 the last `news_of`,
//           3 the next level, 4 levels at which edges fell, 5 how many edges are noted, 6 below which count every
//           standing edge is noted.
// Needs     in each count the triangles the edge has left, GONE for fallen ones; room in `queue` and `noted` for all edges; all
//           blocks running at once (a cooperative launch sees to it); the state that the launch before left, at first 0.
// Reads     for a level the counts of noted edges (8 bytes each): those within NEAR of the level. Every NEAR levels all counts
//           are read and edges are noted anew. So they are after rounds in which more than one edge in MANY of those left
//           falls: that costs less than to be told of each whose count drops. The rounds: see cascade.cuh.
#define BANDS 0
#include "cascade.cuh"
#include "lists.cuh"

constexpr int NEAR = 16;
constexpr uint32 MANY = 64;
constexpr int NOTHING = 0x7FFFFFFF;

struct Peeling {
    int* queue;
    uint32* tail;
    int* count;
    int* noted;
    uint32* notes;
};

// Noted edges with at most `level` triangles join the frontier.
__device__ __forceinline__ void look_at_noted(const Peeling& peeling, int level, int code) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 size = __ldcg(peeling.notes), lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < size; i += threads) {
        const int edge = i + lane < size ? __ldcg(&peeling.noted[i + lane]) : -1;
        const int count = edge < 0 ? -1 : __ldcg(&peeling.count[edge]);
        const bool falls = count >= 0 && count <= level;
        if (falls) peeling.count[edge] = code;
        append(peeling.queue, peeling.tail, falls, edge);
    }
}

// The same of all edges; the others within NEAR of the level are noted. Gives the least count above the level that this warp
// has seen. Edges of one row stay together in the queue, and will be one warp's work.
__device__ __forceinline__ int look_at_all(const Peeling& peeling, uint32 edges, int level, int code) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 lane = threadIdx.x & 31;
    int least = NOTHING;
    for (uint32 i = warp * 32 * STEPS; i < edges; i += warps * 32 * STEPS) {
        uint32 falls = 0, near = 0;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const uint32 edge = i + 32 * step + lane;
            const int count = edge < edges ? __ldcg(&peeling.count[edge]) : -1;
            if (count > level) {
                least = min(least, count);
                near |= static_cast<uint32>(count < level + NEAR) << step;
            } else if (count >= 0) {
                peeling.count[edge] = code;
                falls |= 1u << step;
            }
        }
        append_all(peeling.queue, peeling.tail, falls, i);
        append_all(peeling.noted, peeling.notes, near, i);
    }
    return warp_min(least);
}

constexpr uint32 SOME_FALL = 1;  // edges have joined the frontier
constexpr uint32 SOME_LEFT = 2;  // edges are left
constexpr uint32 FEW_LEFT = 4;   // few enough are left to be numbered anew

// What all blocks know of the frontier queue[begun .. end).
__device__ __forceinline__ uint32 news_of(uint32 begun, uint32 end, uint32 edges, uint32 stop_at) {
    const uint32 left = edges - end;
    return (begun < end ? SOME_FALL : 0) | (left ? SOME_LEFT : 0) | (left && left <= stop_at ? FEW_LEFT : 0);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) peel(
    int* queue, uint32* state, Barrier* barrier, int2* heavy, int edges, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket,
    const int2* __restrict__ entry, const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count,
    int* noted, int* lambda, uint32 stop_at, uint32 most_rounds) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    uint32 *tail = &state[0], *notes = &state[5], *least_left = &state[7];
    const Graph graph = {low, high, begin, length, bucket, entry, table, filter};
    const Peeling peeling = {queue, tail, count, noted, notes};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 lane = threadIdx.x & 31;
    uint32 begun = state[0], round = 0, levels = state[4], news = SOME_LEFT;
    int level = static_cast<int>(state[3]), near = static_cast<int>(state[6]);
    grid_barrier(barrier, tail);  // all have read the state
    while ((news & SOME_LEFT) && !(news & FEW_LEFT) && round < most_rounds) {
        const bool all = near <= level;
        if (all) {
            near = level + NEAR;
            grid_barrier(barrier, tail);  // all have read what is set back here
            if (thread == 0) *notes = 0, *least_left = NOTHING;
            grid_barrier(barrier, tail);
            const int least = look_at_all(peeling, edges, level, falling_in(round));
            if (lane == 0 && least < NOTHING) atomicMin(reinterpret_cast<int*>(least_left), least);
        } else {
            look_at_noted(peeling, level, falling_in(round));
        }
        if (thread < 3) state[8 + 4 * (round % 3) + thread] = 0;
        uint32 end = grid_barrier(barrier, tail);
        news = news_of(begun, end, edges, stop_at);
        if (!(news & SOME_FALL)) {
            // Every NEAR levels the least count is known, and levels without edges are passed over.
            level = max(level + 1, all ? static_cast<int>(__ldcg(least_left)) : level + 1);
            continue;
        }
        ++levels;
        uint32 before = begun;
        while (news & SOME_FALL) {
            for (uint32 i = before + thread; i < begun; i += threads) {
                const int edge = __ldcg(&queue[i]);
                count[edge] = GONE;
                lambda[edge] = level;
            }
            if (thread < 3) state[8 + 4 * ((round + 1) % 3) + thread] = 0;
            const bool many = end - begun > (edges - begun) / MANY;
            if (many && thread == 0) *notes = 0;
            const int next = falling_in(round + 1);
            const Fall fall = {queue, tail, count, falling_in(round), next, level + 1, near, noted, notes, many};
            uint32 grown = run_round(work, begun, end, &state[8 + 4 * (round % 3)], heavy, barrier, graph, fall);
            if (many) {
                near = level + NEAR;
                look_at_all(peeling, edges, level, next);
                grown = grid_barrier(barrier, tail);
            }
            news = news_of(end, grown, edges, stop_at);
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
        state[2] = news;
        state[3] = static_cast<uint32>(level);
        state[4] = levels;
        state[6] = static_cast<uint32>(near);
    }
}
