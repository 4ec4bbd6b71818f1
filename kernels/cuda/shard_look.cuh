// Looking at halves: which edges are to leave, which may do so in this window of levels, and what is to be told.
//
// Reads     the noted halves of a window, or all halves: 4 bytes each. All are looked at when a window begins, and after rounds in
//           which many edges left.
#pragma once
#include "shard_state.cuh"

// Noted edges with at most `level` triangles are to leave.
__device__ __noinline__ void look_at_noted(const Shard& shard, const Round& round) {
    int* const count = round.count;
    const int level = round.limits.level;
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 size = __ldcg(&shard.state->notes), lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < size; i += threads) {
        const int half = i + lane < size ? __ldcg(&shard.noted[i + lane]) : -1;
        const int now = half < 0 ? counted(LEFT, 0) : __ldcg(&count[half]), role = role_of(now);
        const bool leaves = (role == OWN || role == KEEPER) && count_of(now) <= level;
        if (leaves) count[half] = counted(QUEUED, 0);
        append(shard.queue, &shard.state->queued, leaves, half);
    }
}

// All halves: edges that are to leave, those that may do so in this window, and what is to be told; the lists of the last two are
// empty before. Gives a bound for this warp: edges that stand have as many triangles, or more.
__device__ __noinline__ int look_at_all(const Shard& shard, const Round& round, uint32 halves) {
    int* const count = round.count;
    const Limits limits = round.limits;
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 lane = threadIdx.x & 31;
    const int alarm = alarm_of(limits);
    int least = NOTHING;
    for (uint32 i = warp * 32 * STEPS; i < halves; i += warps * 32 * STEPS) {
        uint32 leaves = 0, notes = 0, tells = 0;
#pragma unroll
        for (int step = 0; step < STEPS; ++step) {
            const uint32 half = i + 32 * step + lane;
            const int now = half < halves ? __ldcg(&count[half]) : counted(LEFT, 0), role = role_of(now), left = count_of(now);
            if (role == OWN || role == KEEPER) {
                if (left <= limits.level) {
                    count[half] = counted(QUEUED, 0);
                    leaves |= 1u << step;
                } else {
                    least = min(least, left);
                    notes |= static_cast<uint32>(left <= limits.last) << step;
                    tells |= static_cast<uint32>(role == KEEPER && left > 2 * alarm + 1) << step;
                }
            } else if (role == SPLIT) {
                if (left > alarm) least = min(least, 2 * left);
                tells |= static_cast<uint32>(left <= alarm) << step;
            } else if (role == REPORTER) {
                tells |= static_cast<uint32>(left < 0) << step;
            }
        }
        append_all(shard.queue, &shard.state->queued, leaves, i);
        append_all(shard.noted, &shard.state->notes, notes, i);
        append_all(shard.event, &shard.state->events, tells, i);
    }
    return warp_min(least);
}
