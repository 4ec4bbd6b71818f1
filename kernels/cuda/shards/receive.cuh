// Applies the mail of a meeting: messages change halves, and removed edges are marked.
//
// If a message makes an edge removable, the edge is written for the next meeting at once, and is removed in the same
// round.
#pragma once
#include "mix.cuh"
#include "shards/send.cuh"

// Makes a half the keeper, with the whole count of its edge. The edge joins the queue, or the candidates of this window.
__device__ __forceinline__ void become_keeper(
    const Shard& shard, const Round& round, const Progress& progress, uint2 ends, int half, int before, int left) {
    const Lists& lists = round.lists;
    const Limits& limits = round.limits;
    int* const count = round.count;
    if (left <= limits.level) {
        count[half] = counted(QUEUED, 0);
        const uint32 slot = reserve_slot(lists.queued);
        lists.queue[slot] = half;
        const uint32 i = slot - progress.edges_sent;
        for (int64 k = 0; i < progress.added_edges && k < shard.mail.copies; ++k) {
            shard.mail.edges[((progress.turn + 1) & 1) * shard.mail.copies + k][i] = ends;
        }
        return;
    }
    count[half] = counted(KEEPER, left);
    if (before > limits.last && left <= limits.last) lists.candidates[reserve_slot(lists.candidate_count)] = half;
}

__device__ __forceinline__ void apply_message(
    const Shard& shard, const Round& round, const Progress& progress, uint32 sender, const Message& message) {
    const int half = half_of(round.rows, round.cut, message.low, message.high), alarm = alarm_limit(round.limits);
    const Lists& lists = round.lists;
    int* const count = round.count;
    if (half < 0) {
        atomicAdd(&shard.sums->faults, 1ull);
        return;
    }
    const int now = __ldcg(&count[half]), role = role_of(now), left = count_of(now), sum = left + message.value;
    if (role < 0) return;
    const uint2 ends = make_uint2(message.low, message.high);
    if (message.kind == ALARM) {
        if (role == ALARMED && shard.cut.own > sender) return;  // the other shard is the keeper
        if (role != SPLIT && role != ALARMED) atomicAdd(&shard.sums->faults, 1ull);
        become_keeper(shard, round, progress, ends, half, NOTHING, sum);
        if (sum > 2 * alarm + 1) add_event(lists, half);
    } else if (message.kind == REPORT) {
        if (role == KEEPER) {
            become_keeper(shard, round, progress, ends, half, left, sum);
        } else {
            if (role != SPLIT) atomicAdd(&shard.sums->faults, 1ull);
            count[half] = now + message.value;
            if (left > alarm && sum <= alarm) add_event(lists, half);
        }
    } else {
        if (role != REPORTER) atomicAdd(&shard.sums->faults, 1ull);
        count[half] = counted(SPLIT, sum);
        if (sum <= alarm && left == 0) add_event(lists, half);  // with a loss to report the half is in the ring already
    }
}

// Applies the messages of all shards.
__device__ __noinline__ void apply_messages(const Shard& shard, const Round& round, const Progress& progress, const Received& received) {
    const uint32 threads = gridDim.x * blockDim.x;
    int applied = 0;
    for (uint32 q = 0; q < shard.cut.shards; ++q) {
        if (q == shard.cut.own) continue;
        const uint4* box = reinterpret_cast<const uint4*>(messages_in(shard.mail, progress.turn, q));
        for (uint32 i = start_of(1 + q % 3), size = received.messages[q]; i < size; i += threads) {
            const uint4 one = __ldcg(&box[i]);
            apply_message(shard, round, progress, q, {one.x, one.y, static_cast<int>(one.z), one.w});
            ++applied;
        }
    }
    add_sum(&shard.sums->received, applied);
}

// A 64-bit hash of an edge and its level. kernels/cpu/shards computes the same.
__device__ __forceinline__ unsigned long long hashed(uint32 low, uint32 high, int level) {
    const uint64 ends = mixed(static_cast<uint64>(low) << 32 | high);
    return mixed(ends + static_cast<uint64>(level)) + 0x9E3779B97F4A7C15ull;
}

// Marks the removed edges that this meeting has brought. Earlier meetings have marked `before` edges of the round.
__device__ __noinline__ void mark_removed(const Shard& shard, const Round& round, const Received& received, uint32 before) {
    const uint32 threads = gridDim.x * blockDim.x;
    int* const count = round.count;
    unsigned long long fingerprint = 0;
    int marked = 0;
    for (uint32 i = start_of(0); i < received.edges; i += threads) {
        const uint2 ends = received_edge(received, i);
        const bool at_low = class_of(shard.cut, ends.x) == shard.cut.own, at_high = class_of(shard.cut, ends.y) == shard.cut.own;
        int half = -1;
        if (at_low || at_high) {
            half = half_of(round.rows, shard.cut, ends.x, ends.y);
            if (half < 0 || !remains(__ldcg(&count[half]))) {
                atomicAdd(&shard.sums->faults, 1ull);
            } else {
                count[half] = counted(LEAVING, 0);
                ++marked;
                const unsigned long long hash = hashed(ends.x, ends.y, round.limits.level);
                fingerprint += at_low && at_high ? 0 : at_high ? hash : 0 - hash;
            }
        }
        shard.removing[before + i] = half;
        shard.removed_ends[before + i] = ends;
    }
    marked = warp_sum(marked);
    if (marked == 0) return;
    for (int step = 16; step; step /= 2) fingerprint += __shfl_xor_sync(ALL_LANES, fingerprint, step);
    if ((threadIdx.x & 31) == 0) {
        atomicSub(&shard.state->halves, static_cast<uint32>(marked));
        atomicAdd(&shard.sums->fingerprint, fingerprint);
    }
}
