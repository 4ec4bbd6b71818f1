// A meeting of all shards. The last block of a shard to arrive posts for the shard, and all blocks wait for the posts of all shards.
//
// A post contains counts from memory (queued edges, messages, events, remaining halves) and the blocks' Contribution.
#pragma once
#include "shards/state.cuh"

// A warp of the last block to arrive posts for the shard, while no other block writes.
__device__ __noinline__ void post_and_collect(const Shard& shard, const Progress& progress, uint32 turn, const Contribution& contribution) {
    fence_shards();
    const Mail& mail = shard.mail;
    State* const state = shard.state;
    const uint32 lane = threadIdx.x & 31;
    const bool posts = lane < static_cast<uint32>(mail.shards);
    const uint32 messages = posts ? seen(&mail.meeting->out[lane]) : 0;
    const uint32 queued = seen(&state->queued) - progress.edges_sent, events = seen(&state->events) - progress.events_sent;
    const uint32 halves = seen(&state->halves), least = seen(reinterpret_cast<const uint32*>(&state->least));
    const uint32 edges = min(contribution.max_edges, queued), sent = static_cast<uint32>(warp_sum(static_cast<int>(messages)));
    uint32 news = contribution.news;
    if (sent) news |= HAS_MESSAGES;
    if (events > contribution.events_sent) news |= HAS_BACKLOG;
    if (halves && halves <= contribution.stop_at) news |= FEW_LEFT;
    write_posts(mail, turn, edges, messages, news, contribution.least_known ? static_cast<int>(least) : contribution.least);
    if (posts) mail.meeting->out[lane] = 0;
    if (lane == 0) {
        mail.meeting->turn = turn;
        state->counters[0] = state->counters[1] = state->counters[2] = 0;
        if (contribution.is_exchange) state->alarms[(progress.exchanges & 1) ^ 1] = 0;
        if (events > shard.room) atomicAdd(&shard.sums->faults, 1ull);
        if (sent) atomicAdd(&shard.sums->sent, static_cast<unsigned long long>(sent));
        atomicAdd(&state->edges_sent, edges);
        atomicAdd(&state->exchanges, 1u);
    }
    collect_posts(mail, turn);
}

// Each block of each shard waits for all others.
__device__ __forceinline__ const Received& meet(GridBarrier& grid, const Shard& shard, Progress& progress, const Contribution& contribution) {
    __shared__ uint32 until[MAX_SHARDS], messages[MAX_SHARDS];
    __shared__ Received received;
    __syncthreads();
    if (threadIdx.x < 32) {
        const uint32 turn = progress.turn + 1;
        uint32 last = 0, own = 0;
        if (threadIdx.x == 0) {
            grid.awaited += gridDim.x;
            fence_shards();
            last = atomicAdd(grid.arrived, 1u) + 1 == grid.awaited;
        }
        if (__shfl_sync(ALL_LANES, last, 0)) post_and_collect(shard, progress, turn, contribution);
        __syncwarp();
        await_posts(shard.mail, turn, received, until, messages, own);
        if (threadIdx.x == 0) {
            progress.turn = turn;
            progress.exchanges += contribution.is_exchange;
            progress.edges_sent += own;
            progress.events_sent += contribution.events_sent;
            progress.added_edges = contribution.added_edges;
        }
    }
    __syncthreads();
    return received;
}
