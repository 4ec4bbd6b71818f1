// The coarse filter of tasks/bands: removes edges with fewer triangles than a limit, pass by pass; see kernels/gpu/filtering.py.
//
// measure       Computes the number of edges below the limit, and the sum of their counts.
// list_below    Marks the edges below the limit as edges that round 0 removes. Lists those in one worker's share: runs
//               of SHARE consecutive edges, which go to the workers in turn.
// remove_edges  Removes the edges queue[0 .. state[0]). With `once` lists no further edges, and removed edges keep
//               their mark. Otherwise runs rounds until no edge falls below the limit, or more than `most` edges do in
//               a round; these edges get their counts back. Writes the rounds to state[1], and the number of removed
//               edges to state[2]. Adds the number of removed triangles to `triangles`.
// subtract      Follows a pass that has changed a copy of the counts. Turns the copy into the amounts by which the pass
//               lowered the counts of the edges that are left, and marks the edges of the pass as gone.
// survey        Over the counts of edges that are left: how often each count below `bins` occurs, the sum, the digest
//               and the least count.
//
// Needs         `remove_edges` is a cooperative launch. All of `state` but its first word and all of `barrier` are 0 at
//               the start. Rounds: cascade.cuh.
// Reads         4 bytes an edge in each kernel but `remove_edges`; `subtract` writes as much.
#define COUNTS_TRIANGLES 1
#include "cascade.cuh"
#include "frontiers/lists.cuh"
#include "mix.cuh"

constexpr int SHARE = 64;  // consecutive edges of one share
constexpr int NOTHING = 0x7FFFFFFF;

__device__ __forceinline__ uint64 warp_sum_long(uint64 value) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
}

__device__ __forceinline__ void add_long(uint64* sum, uint64 value) {
    const uint64 all = warp_sum_long(value);
    if (all && (threadIdx.x & 31) == 0) atomicAdd(sum, all);
}

extern "C" __global__ void measure(const int* __restrict__ count, uint32 edges, int limit, uint64* sums) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint64 found = 0, triangles = 0;
    for (uint32 e = thread; e < edges; e += threads) {
        const int c = count[e];
        if (c >= 0 && c < limit) ++found, triangles += c;
    }
    add_long(&sums[0], found);
    add_long(&sums[1], triangles);
}

extern "C" __global__ void list_below(
    int* count, uint32 edges, int limit, uint32 worker, uint32 workers, int* queue, uint32* tail) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5, lane = threadIdx.x & 31;
    for (uint32 i = warp * 32 * STEPS; i < edges; i += warps * 32 * STEPS) {
        uint32 own = 0;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const uint32 edge = i + 32 * step + lane;
            const int c = edge < edges ? count[edge] : -1;
            if (c >= 0 && c < limit) {
                count[edge] = removed_in(0);
                own |= static_cast<uint32>(edge / SHARE % workers == worker) << step;
            }
        }
        append_all(queue, tail, own, i);
    }
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) remove_edges(
    int* queue, uint32* state, Barrier* barrier, int2* heavy, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket,
    const int2* __restrict__ entry, const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count,
    int limit, bool once, uint32 most, uint64* triangles) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    uint32* tail = &state[0];
    const Graph graph = {low, high, begin, length, bucket, entry, table, filter};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint32 before = 0, begun = 0, round = 0;
    uint32 end = grid_barrier(barrier, tail);
    while (begun < end) {
        for (uint32 i = before + thread; i < begun; i += threads) count[__ldcg(&queue[i])] = GONE;
        if (thread < 3) state[8 + 4 * ((round + 1) % 3) + thread] = 0;
        const Removal removal = {queue, tail, count, removed_in(round), removed_in(round + 1), limit, NOTHING, nullptr, nullptr, once,
                                 triangles};
        const uint32 grown = run_round(work, queue + begun, end - begun, &state[8 + 4 * (round % 3)], heavy, barrier, graph, removal);
        before = begun;
        begun = end;
        end = grown;
        ++round;
        if (once || end - begun > most) break;
    }
    if (!once) {
        for (uint32 i = before + thread; i < begun; i += threads) count[__ldcg(&queue[i])] = GONE;
        // The edges that fell in the last round remain: this undoes the addition that marked them.
        for (uint32 i = begun + thread; i < end; i += threads) count[__ldcg(&queue[i])] -= removed_in(round) - (limit - 1);
    }
    if (thread == 0) {
        state[1] = round;
        state[2] = begun;
    }
}

extern "C" __global__ void subtract(int* count, int* lowered, uint32 edges, int limit) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (uint32 e = thread; e < edges; e += threads) {
        const int c = count[e];
        lowered[e] = c >= limit ? c - lowered[e] : 0;
        if (c >= 0 && c < limit) count[e] = GONE;
    }
}

// `sums` are the sum of the counts and their digest, which kernels/cpu/peeling/filtering.py computes in the same way.
extern "C" __global__ void survey(
    const int* __restrict__ count, uint32 edges, int bins, int near_bins, uint32* histogram, uint64* sums, int* least) {
    extern __shared__ uint32 near[];
    for (int bin = threadIdx.x; bin < near_bins; bin += blockDim.x) near[bin] = 0;
    __syncthreads();
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint64 total = 0, digest = 0;
    int smallest = NOTHING;
    for (uint32 e = thread; e < edges; e += threads) {
        const int c = count[e];
        if (c < 0) continue;
        total += c;
        digest += mixed(static_cast<uint64>(e) << 32 | static_cast<uint64>(c));
        smallest = min(smallest, c);
        if (c < near_bins) {
            atomicAdd(&near[c], 1u);
        } else if (c < bins) {
            atomicAdd(&histogram[c], 1u);
        }
    }
    add_long(&sums[0], total);
    add_long(&sums[1], digest);
    smallest = warp_min(smallest);
    if ((threadIdx.x & 31) == 0 && smallest < NOTHING) atomicMin(least, smallest);
    __syncthreads();
    for (int bin = threadIdx.x; bin < near_bins; bin += blockDim.x) {
        if (near[bin]) atomicAdd(&histogram[bin], near[bin]);
    }
}
