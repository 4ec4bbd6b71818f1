// Peeling, level by level: at level k every edge with at most k triangles left falls with λ = k, and all that falls with it.
//
// Computes  levels from state[3] on, until no more than `stop_at` edges are left or `most_rounds` rounds have run. Leaves in
//           state: 0 edges fallen (they stand in the queue in the order of their fall), 1 rounds, 3 the next level,
//           4 levels at which edges fell, 5 how many edges are noted, 6 below which count every standing edge is noted.
// Needs     in each count the triangles the edge has left, GONE for fallen ones; room in `queue` and `noted` for all edges; a
//           cooperative launch; the state that the launch before left, at first 0.
// Reads     for a level the counts of noted edges (8 bytes each): those within NEAR of the level. Every NEAR levels all counts
//           are read and edges are noted anew. The rounds: see cascade.cuh.
#define BANDS 0
#include "cascade.cuh"

constexpr int NEAR = 16;

struct Peeling {
    int* queue;
    uint32* tail;
    int* count;
    int* noted;
    uint32* notes;
};

// Appends together what the lanes of a warp have.
__device__ __forceinline__ void append(int* list, uint32* size, bool has, int edge) {
    const uint32 lanes = __ballot_sync(ALL_LANES, has);
    if (!lanes) return;
    const int lane = threadIdx.x & 31;
    uint32 base = 0;
    if (lane == 0) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    base = __shfl_sync(ALL_LANES, base, 0);
    if (has) list[base + __popc(lanes & ((1u << lane) - 1))] = edge;
}

// Edges with at most `level` triangles join the frontier; with `all`, the others within NEAR of it are noted.
__device__ __forceinline__ void look_at(
    const Peeling& peeling, int edge, bool active, int level, bool all, int code, int& least) {
    const int count = active ? __ldcg(&peeling.count[edge]) : -1;
    const bool falls = count >= 0 && count <= level;
    if (falls) peeling.count[edge] = code;
    append(peeling.queue, peeling.tail, falls, edge);
    if (!all) return;
    append(peeling.noted, peeling.notes, count > level && count < level + NEAR, edge);
    if (count > level) least = min(least, count);
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) peel(
    int* queue, uint32* state, Barrier* barrier, int2* heavy, int edges, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int64* __restrict__ bucket, const int2* __restrict__ entry,
    const uint4* __restrict__ slot, const unsigned short* __restrict__ filter, int* count, int* noted, int* lambda, uint32 stop_at, uint32 most_rounds) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    uint32 *tail = &state[0], *notes = &state[5], *least_left = &state[7];
    const Graph graph = {low, high, begin, bucket, entry, slot, filter};
    const Peeling peeling = {queue, tail, count, noted, notes};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 lane = threadIdx.x & 31;
    uint32 begun = state[0], round = 0, levels = state[4];
    int level = static_cast<int>(state[3]), near = static_cast<int>(state[6]);
    grid_barrier(barrier, tail);  // all have read the state
    while (edges - begun > stop_at && round < most_rounds) {
        const bool all = near <= level;
        if (all) {
            near = level + NEAR;
            grid_barrier(barrier, tail);  // all have read what is set back here
            if (thread == 0) *notes = 0, *least_left = 0x7FFFFFFF;
            grid_barrier(barrier, tail);
        }
        const uint32 size = all ? static_cast<uint32>(edges) : __ldcg(notes);
        int least = 0x7FFFFFFF;
        for (uint32 i = thread - lane; i < size; i += threads) {
            const bool active = i + lane < size;
            const int edge = !active ? 0 : all ? static_cast<int>(i + lane) : __ldcg(&noted[i + lane]);
            look_at(peeling, edge, active, level, all, falling_in(round), least);
        }
        if (all) {
            least = warp_min(least);
            if (lane == 0 && least < 0x7FFFFFFF) atomicMin(reinterpret_cast<int*>(least_left), least);
        }
        if (thread < 3) state[8 + 4 * (round % 3) + thread] = 0;
        uint32 before = begun, end = grid_barrier(barrier, tail);
        if (begun == end) {
            // Every NEAR levels the least count is known, and levels without edges are passed over.
            level = all ? max(level + 1, static_cast<int>(__ldcg(least_left))) : level + 1;
            continue;
        }
        ++levels;
        while (begun < end) {
            for (uint32 i = before + thread; i < begun; i += threads) {
                const int edge = __ldcg(&queue[i]);
                count[edge] = GONE;
                lambda[edge] = level;
            }
            if (thread < 3) state[8 + 4 * ((round + 1) % 3) + thread] = 0;
            const Fall fall = {queue, tail, count, falling_in(round), falling_in(round + 1), level + 1, near, noted, notes};
            const uint32 grown = run_round(work, begun, end, &state[8 + 4 * (round % 3)], heavy, barrier, graph, fall);
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
        state[3] = static_cast<uint32>(level);
        state[4] = levels;
        state[6] = static_cast<uint32>(near);
    }
}
