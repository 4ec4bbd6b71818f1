// Taking in what came with a meeting: messages change halves, and edges that leave are marked.
//
// An edge that a message makes leave is written for the next meeting at once: it leaves in the same round.
#pragma once
#include "shard_tell.cuh"

// The whole count of an edge is known here: it leaves, or may do so in this window.
__device__ __forceinline__ void keep(
    const Shard& shard, const Round& round, const Course& course, uint2 ends, int half, int before, int left) {
    const Lists& lists = round.lists;
    const Limits& limits = round.limits;
    int* const count = round.count;
    if (left <= limits.level) {
        count[half] = counted(QUEUED, 0);
        const uint32 place = room_for_one(lists.queued);
        lists.queue[place] = half;
        const uint32 i = place - course.queued;
        for (int64 k = 0; i < course.room && k < shard.mail.copies; ++k) {
            shard.mail.edges[((course.turn + 1) & 1) * shard.mail.copies + k][i] = ends;
        }
        return;
    }
    count[half] = counted(KEEPER, left);
    if (before > limits.last && left <= limits.last) lists.noted[room_for_one(lists.notes)] = half;
}

__device__ __forceinline__ void take_in(
    const Shard& shard, const Round& round, const Course& course, uint32 sender, const Message& message) {
    const int half = half_of(round.rows, round.cut, message.low, message.high), alarm = alarm_of(round.limits);
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
        if (role == ALARMED && shard.cut.own > sender) return;  // the other shard keeps it
        if (role != SPLIT && role != ALARMED) atomicAdd(&shard.sums->faults, 1ull);
        keep(shard, round, course, ends, half, NOTHING, sum);
        if (sum > 2 * alarm + 1) tell(lists, half);
    } else if (message.kind == REPORT) {
        if (role == KEEPER) {
            keep(shard, round, course, ends, half, left, sum);
        } else {
            if (role != SPLIT) atomicAdd(&shard.sums->faults, 1ull);
            count[half] = now + message.value;
            if (left > alarm && sum <= alarm) tell(lists, half);
        }
    } else {
        if (role != REPORTER) atomicAdd(&shard.sums->faults, 1ull);
        count[half] = counted(SPLIT, sum);
        if (sum <= alarm && left == 0) tell(lists, half);  // else it is in the ring
    }
}

// Takes in messages.
__device__ __noinline__ void receive(const Shard& shard, const Round& round, const Course& course, const Arrived& came) {
    const uint32 threads = gridDim.x * blockDim.x;
    int received = 0;
    for (uint32 q = 0; q < shard.cut.shards; ++q) {
        if (q == shard.cut.own) continue;
        const uint4* box = reinterpret_cast<const uint4*>(messages_in(shard.mail, course.turn, q));
        for (uint32 i = start_of(1 + q % 3), size = came.messages[q]; i < size; i += threads) {
            const uint4 one = __ldcg(&box[i]);
            take_in(shard, round, course, q, {one.x, one.y, static_cast<int>(one.z), one.w});
            ++received;
        }
    }
    add_up(&shard.sums->received, received);
}

// A 64-bit hash of an edge and its level (the finalizer of splitmix64, twice), as in kernels/cpu/shards/rounds.py.
__device__ __forceinline__ unsigned long long hashed(uint32 low, uint32 high, int level) {
    unsigned long long x = static_cast<unsigned long long>(low) << 32 | high;
    const unsigned long long words[2] = {static_cast<unsigned long long>(level), 0x9E3779B97F4A7C15ull};
#pragma unroll
    for (int k = 0; k < 2; ++k) {
        x ^= x >> 30;
        x *= 0xBF58476D1CE4E5B9ull;
        x ^= x >> 27;
        x *= 0x94D049BB133111EBull;
        x ^= x >> 31;
        x += words[k];
    }
    return x;
}

// Marks edges that leave in this round, in which `before` were marked before.
__device__ __noinline__ void mark(const Shard& shard, const Round& round, const Arrived& came, uint32 before) {
    const uint32 threads = gridDim.x * blockDim.x;
    int* const count = round.count;
    unsigned long long fingerprint = 0;
    int marked = 0;
    for (uint32 i = start_of(0); i < came.edges; i += threads) {
        const uint2 ends = leaving_edge(came, i);
        const bool at_low = class_of(shard.cut, ends.x) == shard.cut.own, at_high = class_of(shard.cut, ends.y) == shard.cut.own;
        int half = -1;
        if (at_low || at_high) {
            half = half_of(round.rows, shard.cut, ends.x, ends.y);
            if (half < 0 || !stands(__ldcg(&count[half]))) {
                atomicAdd(&shard.sums->faults, 1ull);
            } else {
                count[half] = counted(LEAVING, 0);
                ++marked;
                const unsigned long long hash = hashed(ends.x, ends.y, round.limits.level);
                fingerprint += at_low && at_high ? 0 : at_high ? hash : 0 - hash;
            }
        }
        shard.leaving[before + i] = half;
        shard.departing[before + i] = ends;
    }
    marked = warp_sum(marked);
    if (marked == 0) return;
    for (int step = 16; step; step /= 2) fingerprint += __shfl_xor_sync(ALL_LANES, fingerprint, step);
    if ((threadIdx.x & 31) == 0) {
        atomicSub(&shard.state->halves, static_cast<uint32>(marked));
        atomicAdd(&shard.sums->fingerprint, fingerprint);
    }
}
