// Edges that fall in many bands side by side, until nothing more falls: all rounds of a cascade in one launch.
//
// Computes  for the edges queue[0 .. state[0]), which fall now, all that falls with them; fallen edges have count GONE and
//           stand in the queue, state[0] of them; state[1] is the rounds it took. See cascade.cuh.
// Needs     count >= 0 for every edge of the first frontier, and in each count of an owned edge the triangles it has left;
//           room in the queue for all edges; a cooperative launch; all of state but the first, and of barrier, 0.
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
    for (uint32 i = thread; i < end; i += threads) count[queue[i]] = falling_in(0);
    grid_barrier(barrier, tail);
    while (begun < end) {
        for (uint32 i = before + thread; i < begun; i += threads) count[__ldcg(&queue[i])] = GONE;
        if (thread < 3) state[4 + 4 * ((round + 1) % 3) + thread] = 0;
        const Fall fall = {queue, tail, count, falling_in(round), falling_in(round + 1), threshold, band};
        const uint32 grown = run_round(work, begun, end, &state[4 + 4 * (round % 3)], heavy, barrier, graph, fall);
        before = begun;
        begun = end;
        end = grown;
        ++round;
    }
    for (uint32 i = before + thread; i < end; i += threads) count[__ldcg(&queue[i])] = GONE;
    if (thread == 0) state[1] = round;
}
