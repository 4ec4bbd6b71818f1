// Peeling of one shard in step with all others, level by level.
//
// Computes  levels from state.level on, until no edge remains, a shard has so few halves that it should renumber them,
//           a shard has run `max_rounds` rounds, or a shard wants to quit. All shards stop at the end of the same
//           level. Writes the level to the halves of removed edges. A shard must not stop alone, since its next window
//           would then begin at another level than the windows of other shards. With different windows one shard could
//           grant a count that the other returns by an alarm, without end.
// Protocol  that of kernels/cpu/shards/half_counts.py. Each iteration of the loop writes edges to remove and messages, meets, applies
//           the mail, and removes the triangles of the edges. If there were messages, all shards meet a second time before they
//           remove triangles: this meeting brings the edges that the messages make removable, and they belong to the same round. A
//           level ends with a meeting that brings nothing to any shard.
// Parts     shards/state.cuh the state of a shard; shards/scan.cuh scans of halves; shards/send.cuh outgoing mail; shards/meet.cuh
//           and shards/mail.cuh meetings; shards/receive.cuh incoming mail; shards/round.cuh removal.
// Needs     all blocks of all shards run at the same time; capacity in `queue` and `candidates` for all halves, in the ring of events
//           for all halves and twice max_events, in `removing` for max_edges of each shard.
// Reads     all halves (4 bytes each) at the start of a window of levels and after rounds that remove more than one in MANY of the
//           remaining edges; at other levels the candidates.
#include "shards/scan.cuh"
#include "shards/meet.cuh"
#include "shards/receive.cuh"

#ifndef PROFILE
#define PROFILE 0
#endif

// Adds up the time between calls, on one thread of the grid.
struct Timer {
    int64 before;
    int64 spent[5];
    __device__ __forceinline__ void start() {
        before = nanoseconds();
        for (int what = 0; what < 5; ++what) spent[what] = 0;
    }
    __device__ __forceinline__ void add(int what) {
#if PROFILE
        if (blockIdx.x == 0 && threadIdx.x == 0) {
            const int64 now = nanoseconds();
            spent[what] += now - before;
            before = now;
        }
#endif
    }
    __device__ __forceinline__ void stop(Sums* sums) {
        for (int what = 0; what < 5; ++what) sums->spent[what] += spent[what];
    }
};

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) shards(
    const Shard* __restrict__ parameters, Barrier* barrier, uint32 halves, const uint4* __restrict__ row, const int2* __restrict__ entry,
    const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count, uint32 stop_at, uint32 max_rounds,
    uint32 quit) {
    extern __shared__ char shared[];
    __shared__ Shard shard;
    __shared__ Round round;
    __shared__ Progress progress;
    __shared__ Contribution contribution;
    __shared__ GridBarrier grid;
    __shared__ Timer timer;
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    work.triangles[threadIdx.x & 31] = 0;
    if ((threadIdx.x & 31) == 0) work.entries = 0;
    if (threadIdx.x == 0) {
        shard = *parameters;
        State* state = shard.state;
        round = {
            {row, entry, table, filter}, shard.cut, count,
            {shard.queue, &state->queued, shard.candidates, &state->candidates, shard.events, &state->events, shard.room},
            {state->level, state->level - 1, false}};
    }
    __syncthreads();
    State* const state = shard.state;
    if (threadIdx.x == 0) {
        progress = {seen(&shard.mail.meeting->turn), 0, 0, 0, 0, state->levels, 0, shard.sums->left};
        grid = {&barrier->arrived, 0};
        timer.start();
    }
    uint32 marked = 0;
    bool level_starts = true, least_known = false, none_removed = true, second_meeting = false;
    pass_barrier(grid);  // all blocks have read the state
    while (true) {
        if (level_starts) {
            least_known = round.limits.level > round.limits.last;
            if (least_known) {
                if (blockIdx.x == 0 && threadIdx.x == 0) state->candidates = state->events = 0, state->least = NOTHING;
                __syncthreads();
                if (threadIdx.x == 0) round.limits.last = round.limits.level + WINDOW - 1, progress.events_sent = 0;
                pass_barrier(grid);
                const int least = scan_all(shard, round, halves);
                if ((threadIdx.x & 31) == 0 && least < NOTHING) atomicMin(&state->least, least);
            } else {
                scan_candidates(shard, round);
            }
            pass_barrier(grid);
            level_starts = false;
            none_removed = true;
            timer.add(0);
        }
        const uint32 news = quit | (progress.rounds >= max_rounds ? ROUNDS_DONE : 0);
        if (second_meeting) {
            if (threadIdx.x == 0) contribution = {progress.added_edges, 0, 0, news, stop_at, round.limits.level + 1, false, false};
        } else {
            const uint32 max_edges = static_cast<uint32>(shard.mail.max_edges);
            const uint32 all = __ldcg(&state->queued) - progress.edges_sent, edges = min(max_edges, all);
            const uint32 events = min(static_cast<uint32>(shard.mail.max_events), __ldcg(&state->events) - progress.events_sent);
            if (threadIdx.x == 0) {
                const uint32 added_edges = all > max_edges ? 0 : max_edges - edges;
                contribution = {max_edges, added_edges, events, news, stop_at, round.limits.level + 1, least_known, true};
            }
            for (uint32 i = start_of(0); i < marked; i += gridDim.x * blockDim.x) {
                const int half = __ldcg(&shard.removing[i]);
                if (half >= 0) count[half] = counted(LEFT, round.limits.level);
            }
            send_edges(shard, progress.turn + 1, progress.edges_sent, edges);
            settle_alarms(shard, progress, count);
            send_events(shard, round, progress, events);
            marked = 0;
        }
        timer.add(1);
        const Received& received = meet(grid, shard, progress, contribution);
        timer.add(2);
        if (received.news & LOST) break;
        const uint32 before = marked;
        marked += received.edges;
        if (!marked && !(received.news & (HAS_MESSAGES | HAS_BACKLOG))) {
            if (second_meeting) settle_alarms(shard, progress, count);  // sends no report: nothing was removed since
            second_meeting = false;
            __syncthreads();
            if (threadIdx.x == 0) round.limits.level = max(round.limits.level + 1, none_removed ? received.least : 0);
            __syncthreads();
            if (!progress.left || (received.news & (FEW_LEFT | ROUNDS_DONE | QUIT))) break;
            level_starts = true;
            continue;
        }
        const bool has_messages = received.news & HAS_MESSAGES;
        least_known = false;
        if (received.edges) mark_removed(shard, round, received, before);
        if (has_messages) apply_messages(shard, round, progress, received);
        second_meeting = has_messages;
        if (second_meeting) {
            timer.add(3);
            continue;
        }
        const bool changed = received.edges || has_messages;
        __syncthreads();
        if (threadIdx.x == 0 && marked) {
            round.limits.silent = marked > progress.left / MANY;
            progress.left -= marked;
            progress.levels += none_removed;
            ++progress.rounds;
            if (round.limits.silent) progress.events_sent = 0;
        }
        none_removed = none_removed && !marked;
        if (changed) {
            pass_barrier(grid);
        } else {
            __syncthreads();
        }
        timer.add(3);
        if (!marked) continue;
        if (round.limits.silent && blockIdx.x == 0 && threadIdx.x == 0) state->candidates = 0, state->events = 0;
        run_round(
            work, {row, entry, table, filter}, count, round, {shard.removed_ends, marked}, state->counters, shard.heavy, grid);
        if (round.limits.silent) {
            scan_all(shard, round, halves);
            pass_barrier(grid);
        }
        timer.add(4);
    }
    if (work.triangles[threadIdx.x & 31]) {
        atomicAdd(&shard.sums->triangles, static_cast<unsigned long long>(work.triangles[threadIdx.x & 31]));
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(&shard.sums->entries, work.entries);
    pass_barrier(grid);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        timer.stop(shard.sums);
        state->queued = state->candidates = state->events = state->alarms[0] = state->alarms[1] = 0;
        state->level = round.limits.level;
        state->levels = progress.levels;
        state->news = seen(reinterpret_cast<const uint32*>(&shard.mail.meeting->collected[0].word[2]));
        state->rounds += progress.rounds;
        shard.sums->left = progress.left;
    }
}

// Sends the halves of remaining edges from the shard of the low end to the shard of the high end, where `sum` becomes the whole count.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) gather_halves(
    const Shard* __restrict__ parameters, Barrier* barrier, uint32 halves, const uint4* __restrict__ row, const int2* __restrict__ entry,
    const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, const int* __restrict__ count, int* sum) {
    __shared__ Shard shard;
    if (threadIdx.x == 0) shard = *parameters;
    __syncthreads();
    const Rows rows = {row, entry, table, filter};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 most = static_cast<uint32>(shard.mail.max_events);
    __shared__ Progress progress;
    __shared__ GridBarrier grid;
    if (threadIdx.x == 0) {
        progress = {seen(&shard.mail.meeting->turn), 0, 0, 0, 0, 0, 0, 0};
        grid = {&barrier->arrived, 0};
    }
    uint32 news = HAS_BACKLOG;
    pass_barrier(grid);
    for (uint32 base = 0; news & (HAS_MESSAGES | HAS_BACKLOG); base += min(most, halves - base)) {
        const uint32 stop = base + min(most, halves - base);
        for (uint32 half = base + thread; half < stop; half += threads) {
            const int now = count[half];
            const uint2 ends = ends_of(shard, half);
            if (!remains(now) || class_of(shard.cut, ends.y) == shard.cut.own) continue;
            send_message(shard, progress.turn + 1, ends, count_of(now), REPORT);
        }
        const Received& received = meet(grid, shard, progress, {0, 0, 0, stop < halves ? HAS_BACKLOG : 0, 0, 0, false, false});
        news = received.news;
        if (news & LOST) break;
        int applied = 0, faults = 0;
        for (uint32 q = 0; q < shard.cut.shards; ++q) {
            const uint4* box = reinterpret_cast<const uint4*>(messages_in(shard.mail, progress.turn, q));
            for (uint32 i = thread, size = received.messages[q]; i < size; i += threads) {
                const uint4 one = __ldcg(&box[i]);
                const int half = half_of(rows, shard.cut, one.x, one.y);
                if (half >= 0) sum[half] += static_cast<int>(one.z);
                ++(half < 0 ? faults : applied);
            }
        }
        add_sum(&shard.sums->received, applied);
        add_sum(&shard.sums->faults, faults);
    }
    pass_barrier(grid);
    if (thread == 0) shard.state->news = news;
}
