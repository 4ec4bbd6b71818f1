// What a shard tells the others in an exchange: edges that leave, to all, and messages about halves, to the shard of the other half.
//
// alarm    a split half has few triangles left; the one of the two shards that keeps the edge then has the whole count.
// report   what a reporter has removed since its last report.
// grant    a keeper gives half of a large count back.
// kernels/cpu/shards/halves.py has the rules.
#pragma once
#include "shard_state.cuh"

// Writes edges queue[from .. from + edges) for all shards.
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

// Halves that gave an alarm in the exchange before, and were not given the other's count, are reporters. What they have lost since
// is their first report.
__device__ __noinline__ void settle_alarms(const Shard& shard, const Course& course, int* count) {
    const uint32 threads = gridDim.x * blockDim.x;
    const uint32 before = (course.written & 1) ^ 1;
    const uint32 size = __ldcg(&shard.state->told[before]);
    int reports = 0;
    for (uint32 i = start_of(2); i < size; i += threads) {
        const int2 given = __ldcg(&shard.told[before][i]);
        const uint2 ends = ends_of(shard, given.x);  // early: they come together with the half
        const int now = __ldcg(&count[given.x]);
        if (role_of(now) != ALARMED) continue;
        count[given.x] = counted(REPORTER, 0);
        const int lost = count_of(now) - given.y;
        if (lost == 0) continue;
        send_message(shard, course.turn + 1, ends, lost, REPORT);
        ++reports;
    }
    add_up(&shard.sums->reports, reports);
}

// Tells of the next halves in the ring. A half may be there twice, so it is changed by compare and swap.
__device__ __noinline__ void send_events(const Shard& shard, const Round& round, const Course& course, uint32 events) {
    int* const count = round.count;
    const uint32 threads = gridDim.x * blockDim.x;
    const uint32 turn = course.turn + 1, from = course.told, list = course.written & 1;
    const int alarm = alarm_of(round.limits);
    int alarms = 0, reports = 0, grants = 0;
    for (uint32 i = start_of(3); i < events; i += threads) {
        const int half = __ldcg(&shard.event[(from + i) % shard.room]);
        const uint2 ends = ends_of(shard, half);
        const int now = __ldcg(&count[half]), role = role_of(now), left = count_of(now);
        if (role == SPLIT && left <= alarm) {
            if (atomicCAS(&count[half], now, counted(ALARMED, left)) != now) continue;
            shard.told[list][room_for_one(&shard.state->told[list])] = make_int2(half, left);
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
    add_up(&shard.sums->alarms, alarms);
    add_up(&shard.sums->reports, reports);
    add_up(&shard.sums->grants, grants);
}
