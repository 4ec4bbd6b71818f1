// A meeting of all shards: the last block of a shard to come posts for it, and all blocks wait for the posts of all shards.
//
// What a shard posts is counted by the device (edges of the queue, messages, events, halves that stand), or brought by its blocks.
#pragma once
#include "shard_state.cuh"

// A warp of the last block to come posts for the shard, while nobody else writes.
__device__ __noinline__ void attend(const Shard& shard, const Course& course, uint32 turn, const Offer& offer) {
    fence_shards();
    const Mail& mail = shard.mail;
    State* const state = shard.state;
    const uint32 lane = threadIdx.x & 31;
    const bool posts = lane < static_cast<uint32>(mail.shards);
    const uint32 messages = posts ? seen(&mail.meeting->out[lane]) : 0;
    const uint32 queued = seen(&state->queued) - course.queued, events = seen(&state->events) - course.told;
    const uint32 halves = seen(&state->halves), least = seen(reinterpret_cast<const uint32*>(&state->least));
    const uint32 edges = min(offer.room, queued), sent = static_cast<uint32>(warp_sum(static_cast<int>(messages)));
    uint32 news = offer.news;
    if (sent) news |= SOME_TOLD;
    if (events > offer.events) news |= SOME_WAIT;
    if (halves && halves <= offer.stop_at) news |= FEW_LEFT;
    write_posts(mail, turn, edges, messages, news, offer.known ? static_cast<int>(least) : offer.least);
    if (posts) mail.meeting->out[lane] = 0;
    if (lane == 0) {
        mail.meeting->turn = turn;
        state->counters[0] = state->counters[1] = state->counters[2] = 0;
        if (offer.written) state->told[(course.written & 1) ^ 1] = 0;
        if (events > shard.room) atomicAdd(&shard.sums->faults, 1ull);
        if (sent) atomicAdd(&shard.sums->sent, static_cast<unsigned long long>(sent));
        atomicAdd(&state->edges_told, edges);
        atomicAdd(&state->exchanges, 1u);
    }
    spread_posts(mail, turn);
}

// Every block of every shard waits for all others.
__device__ __forceinline__ const Arrived& meet(Gate& gate, const Shard& shard, Course& course, const Offer& offer) {
    __shared__ uint32 until[MOST_SHARDS], messages[MOST_SHARDS];
    __shared__ Arrived came;
    __syncthreads();
    if (threadIdx.x < 32) {
        const uint32 turn = course.turn + 1;
        uint32 last = 0, own = 0;
        if (threadIdx.x == 0) {
            gate.awaited += gridDim.x;
            fence_shards();
            last = atomicAdd(gate.arrived, 1u) + 1 == gate.awaited;
        }
        if (__shfl_sync(ALL_LANES, last, 0)) attend(shard, course, turn, offer);
        __syncwarp();
        hear(shard.mail, turn, came, until, messages, own);
        if (threadIdx.x == 0) {
            course.turn = turn;
            course.written += offer.written;
            course.queued += own;
            course.told += offer.events;
            course.room = offer.spare;
        }
    }
    __syncthreads();
    return came;
}
