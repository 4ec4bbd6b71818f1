// What a shard sends in an exchange: removed edges to all shards, and messages about halves to the shard of the other half.
//
// alarm    The count of a split half, when it is small. The shard that receives it becomes the keeper with the whole
//          count.
// report   The triangles that a reporter has removed since its last report.
// grant    A keeper returns half of a large count.
// kernels/cpu/shards/half_counts.py has the rules.
#pragma once
#include "shards/state.cuh"

// Writes the edges queue[from .. from + edges) for all shards.
__device__ __forceinline__ void send_edges(const Shard& shard, uint32 turn, uint32 from, uint32 edges) {
    const uint32 threads = gridDim.x * blockDim.x;
    for (uint32 i = start_of(1); i < edges; i += threads) {
        const int half = __ldcg(&shard.queue[from + i]);
        const uint2 ends = ends_of(shard, half);
        for (int64 k = 0; k < shard.mail.copies; ++k) shard.mail.edges[(turn & 1) * shard.mail.copies + k][i] = ends;
    }
}

__device__ __forceinline__ void send_message(const Shard& shard, uint32 turn, uint2 ends, int value, uint32 kind) {
    const uint32 of_low = class_of(shard.cut, ends.x);
    send(shard.mail, turn, of_low == shard.cut.own ? class_of(shard.cut, ends.y) : of_low, {ends.x, ends.y, value, kind});
}

// Halves that sent an alarm in the previous exchange, and did not get the count of the other half, become reporters.
// The first report of such a half is its loss since the alarm.
__device__ __noinline__ void settle_alarms(const Shard& shard, const Progress& progress, int* count) {
    const uint32 threads = gridDim.x * blockDim.x;
    const uint32 before = (progress.exchanges & 1) ^ 1;
    const uint32 size = __ldcg(&shard.state->alarms[before]);
    int reports = 0;
    for (uint32 i = start_of(2); i < size; i += threads) {
        const int2 alarm = __ldcg(&shard.alarmed[before][i]);
        const uint2 ends = ends_of(shard, alarm.x);  // loaded early, at the same time as the half
        const int now = __ldcg(&count[alarm.x]);
        if (role_of(now) != ALARMED) continue;
        count[alarm.x] = counted(REPORTER, 0);
        const int lost = count_of(now) - alarm.y;
        if (lost == 0) continue;
        send_message(shard, progress.turn + 1, ends, lost, REPORT);
        ++reports;
    }
    add_sum(&shard.sums->reports, reports);
}

// Sends messages for the next events in the ring. A half may be in the ring twice, so halves are changed by
// compare-and-swap.
__device__ __noinline__ void send_events(const Shard& shard, const Round& round, const Progress& progress, uint32 events) {
    int* const count = round.count;
    const uint32 threads = gridDim.x * blockDim.x;
    const uint32 turn = progress.turn + 1, from = progress.events_sent, list = progress.exchanges & 1;
    const int alarm = alarm_limit(round.limits);
    int alarms = 0, reports = 0, grants = 0;
    for (uint32 i = start_of(3); i < events; i += threads) {
        const int half = __ldcg(&shard.events[(from + i) % shard.room]);
        const uint2 ends = ends_of(shard, half);
        const int now = __ldcg(&count[half]), role = role_of(now), left = count_of(now);
        if (role == SPLIT && left <= alarm) {
            if (atomicCAS(&count[half], now, counted(ALARMED, left)) != now) continue;
            shard.alarmed[list][reserve_slot(&shard.state->alarms[list])] = make_int2(half, left);
            send_message(shard, turn, ends, left, ALARM);
            ++alarms;
        } else if (role == REPORTER && left < 0) {
            if (atomicCAS(&count[half], now, counted(REPORTER, 0)) != now) continue;
            send_message(shard, turn, ends, left, REPORT);
            ++reports;
        } else if (role == KEEPER && left > 2 * alarm + 1) {
            if (atomicCAS(&count[half], now, counted(SPLIT, left - left / 2)) != now) continue;
            send_message(shard, turn, ends, left / 2, GRANT);
            ++grants;
        }
    }
    add_sum(&shard.sums->alarms, alarms);
    add_sum(&shard.sums->reports, reports);
    add_sum(&shard.sums->grants, grants);
}
