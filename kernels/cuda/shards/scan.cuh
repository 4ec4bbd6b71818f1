// Scans of halves that find the edges to remove, the candidates of this window of levels, and the events.
//
// Reads     the candidates of a window, or all halves: 4 bytes each. All halves are scanned when a window begins, and after rounds
//           that removed many edges.
#pragma once
#include "shards/state.cuh"

// Appends the candidates with at most `level` triangles to the queue.
__device__ __noinline__ void scan_candidates(const Shard& shard, const Round& round) {
    int* const count = round.count;
    const int level = round.limits.level;
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 size = __ldcg(&shard.state->candidates), lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < size; i += threads) {
        const int half = i + lane < size ? __ldcg(&shard.candidates[i + lane]) : -1;
        const int now = half < 0 ? counted(LEFT, 0) : __ldcg(&count[half]), role = role_of(now);
        const bool leaves = (role == OWN || role == KEEPER) && count_of(now) <= level;
        if (leaves) count[half] = counted(QUEUED, 0);
        append(shard.queue, &shard.state->queued, leaves, half);
    }
}

// Scans all halves. Appends the edges to remove to the queue, and fills the lists of candidates and events, which are empty before.
// Returns a lower bound of the triangles of the remaining edges of this warp.
__device__ __noinline__ int scan_all(const Shard& shard, const Round& round, uint32 halves) {
    int* const count = round.count;
    const Limits limits = round.limits;
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const uint32 lane = threadIdx.x & 31;
    const int alarm = alarm_limit(limits);
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
        append_all(shard.candidates, &shard.state->candidates, notes, i);
        append_all(shard.events, &shard.state->events, tells, i);
    }
    return warp_min(least);
}
