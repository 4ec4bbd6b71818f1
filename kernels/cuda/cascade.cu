// Removal of edges in many bands at once, until no edge loses its support: all rounds of a cascade in one launch.
//
// Computes  removes the edges queue[0 .. state[0]) and all edges that lose their support by it. At the end the queue contains the
//           removed edges, state[0] is their number, state[1] the number of rounds, and their count is GONE. See cascade.cuh.
// Needs     count >= 0 for every edge of the first frontier; the count of each owned edge is its remaining triangles; a queue with
//           capacity for all edges; a cooperative launch; all of state but its first word, and all of barrier, 0.
#define BANDS 1
#include "cascade.cuh"

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) cascade(
    int* queue, uint32* state, Barrier* barrier, int2* heavy, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket,
    const int2* __restrict__ entry, const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count, const int* __restrict__ threshold,
    const int* __restrict__ band) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    uint32* tail = &state[0];
    const Graph graph = {low, high, begin, length, bucket, entry, table, filter};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint32 before = 0, begun = 0, end = __ldcg(tail), round = 0;
    for (uint32 i = thread; i < end; i += threads) count[queue[i]] = removed_in(0);
    grid_barrier(barrier, tail);
    while (begun < end) {
        for (uint32 i = before + thread; i < begun; i += threads) count[__ldcg(&queue[i])] = GONE;
        if (thread < 3) state[4 + 4 * ((round + 1) % 3) + thread] = 0;
        const Removal removal = {queue, tail, count, removed_in(round), removed_in(round + 1), threshold, band};
        const uint32 grown = run_round(work, queue + begun, end - begun, &state[4 + 4 * (round % 3)], heavy, barrier, graph, removal);
        before = begun;
        begun = end;
        end = grown;
        ++round;
    }
    for (uint32 i = before + thread; i < end; i += threads) count[__ldcg(&queue[i])] = GONE;
    if (thread == 0) state[1] = round;
}
