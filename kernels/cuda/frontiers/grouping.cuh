// Groups the edges of a large frontier by their higher end, which has the longer row in most cases. Edges whose
// neighbours are looked up in one hash table are then processed at about the same time, so more of the table's lines
// are still in the L2 cache.
//
// A counting sort with one bin for each of the 512 vertices of the highest degree, and 256 bins for each doubling of the rank after
// them. Reads each edge and its end twice, and writes the edge once. Takes three barriers.
#pragma once
#include "common.cuh"

struct Grouping {
    int* edge;         // [room] the frontier, grouped
    uint32 room;       // the largest frontier that is grouped; 0 for none
    uint32* size;      // [BINS] edges of each bin; 0 between two frontiers
    uint32* next;      // [BINS] where the next edge of each bin goes
};

// The bin of a vertex with `rank` vertices of a higher degree.
__device__ __forceinline__ uint32 bin_of(uint32 rank) {
    const int octave = max(23 - __clz(rank | 1), 0);
    return (static_cast<uint32>(octave) << 8) + (rank >> octave);
}

// Adds one to the counter of `bin` for each lane that is `given`. Returns the lane's place in the bin.
__device__ __forceinline__ uint32 count_in_bin(uint32* counter, bool given, uint32 bin) {
    const uint32 peers = __match_any_sync(ALL_LANES, given ? bin : EMPTY), lane = threadIdx.x & 31;
    const int leader = __ffs(peers) - 1;
    uint32 base = 0;
    if (given && lane == leader) base = atomicAdd(&counter[bin], static_cast<uint32>(__popc(peers)));
    return __shfl_sync(ALL_LANES, base, leader) + __popc(peers & ((1u << lane) - 1));
}

// One block turns the sizes of the bins into their starts.
__device__ __forceinline__ void start_bins(const Grouping& grouping) {
    __shared__ uint32 before[32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, warps = blockDim.x >> 5;
    const int share = (BINS + blockDim.x - 1) / blockDim.x, first = threadIdx.x * share;
    uint32 sum = 0;
    for (int bin = first; bin < min(first + share, BINS); ++bin) sum += __ldcg(&grouping.size[bin]);
    const uint32 upto = sum_up_to(sum);
    if (lane == 31) before[warp] = upto;
    __syncthreads();
    uint32 begun = upto - sum;
    for (int w = 0; w < min(warp, warps); ++w) begun += before[w];
    for (int bin = first; bin < min(first + share, BINS); ++bin) {
        grouping.next[bin] = begun;
        begun += __ldcg(&grouping.size[bin]);
        grouping.size[bin] = 0;
    }
}

// Returns `queue[0 .. edges)`, or a grouped copy of it if it has LEAST_GROUPED to `room` edges. All blocks call this.
__device__ __forceinline__ const int* group_frontier(
    const int* queue, uint32 edges, const int* __restrict__ high, int vertices, const Grouping& grouping, Barrier* barrier,
    const uint32* watched) {
    if (edges < LEAST_GROUPED || edges > grouping.room) return queue;
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < edges; i += threads) {
        const bool given = i + lane < edges;
        const int edge = given ? __ldcg(&queue[i + lane]) : 0;
        count_in_bin(grouping.size, given, given ? bin_of(static_cast<uint32>(vertices - 1 - high[edge])) : 0);
    }
    grid_barrier(barrier, watched);
    if (blockIdx.x == 0) start_bins(grouping);
    grid_barrier(barrier, watched);
    for (uint32 i = thread - lane; i < edges; i += threads) {
        const bool given = i + lane < edges;
        const int edge = given ? __ldcg(&queue[i + lane]) : 0;
        const uint32 bin = given ? bin_of(static_cast<uint32>(vertices - 1 - high[edge])) : 0;
        const uint32 place = count_in_bin(grouping.next, given, bin);
        if (given) grouping.edge[place] = edge;
    }
    grid_barrier(barrier, watched);
    return grouping.edge;
}
