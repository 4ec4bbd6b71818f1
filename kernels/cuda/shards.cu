// Peeling of one shard in step with all others, level by level.
//
// Computes  levels from state.level on, until no edge is left, few enough are left in a shard, one has run `most_rounds` rounds or
//           wants to quit: all shards stop at the end of the same level. Leaves the level in the halves of edges that left.
//           A shard must not stop alone: its next window would begin at another level than the others', and of two shards with
//           other windows one can grant for ever what the other gives back by an alarm.
// Protocol  that of kernels/cpu/shards/halves.py. A turn of the loop is: write edges that leave and messages; meet; take in what
//           came; remove the edges' triangles. Where messages came all meet once more before they remove: what the messages made
//           leave comes with that second meeting, and goes in the same round. A level is over when a meeting brings nothing to any
//           shard.
// Parts     shard_state.cuh what a shard has; shard_look.cuh looking at halves; shard_tell.cuh what is told; shard_meet.cuh and
//           shard_mail.cuh the meetings; shard_take.cuh what came; shard_round.cuh the removal.
// Needs     all blocks of all shards running at once; room in `queue`, `noted` for all halves, in the ring of events for them and
//           twice most_events, in `leaving` for most_edges of each shard.
// Reads     at the start of a window of levels, and after rounds in which more than one edge in MANY leaves, all halves (4 bytes
//           each); at its other levels the noted ones.
#include "shard_look.cuh"
#include "shard_meet.cuh"
#include "shard_take.cuh"

#ifndef PROFILE
#define PROFILE 0
#endif

// Adds the time since the last call, on one thread of the grid.
struct Watch {
    int64 before;
    int64 spent[5];
    __device__ __forceinline__ void start() {
        before = nanoseconds();
        for (int what = 0; what < 5; ++what) spent[what] = 0;
    }
    __device__ __forceinline__ void note(int what) {
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
    const Shard* __restrict__ given, Barrier* barrier, uint32 halves, const uint4* __restrict__ row, const int2* __restrict__ entry,
    const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, int* count, uint32 stop_at, uint32 most_rounds,
    uint32 quit) {
    extern __shared__ char shared[];
    __shared__ Shard shard;
    __shared__ Round round;
    __shared__ Course course;
    __shared__ Offer offer;
    __shared__ Gate gate;
    __shared__ Watch watch;
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    work.triangles[threadIdx.x & 31] = 0;
    if ((threadIdx.x & 31) == 0) work.entries = 0;
    if (threadIdx.x == 0) {
        shard = *given;
        State* state = shard.state;
        round = {
            {row, entry, table, filter}, shard.cut, count,
            {shard.queue, &state->queued, shard.noted, &state->notes, shard.event, &state->events, shard.room},
            {state->level, state->level - 1, false}};
    }
    __syncthreads();
    State* const state = shard.state;
    if (threadIdx.x == 0) {
        course = {seen(&shard.mail.meeting->turn), 0, 0, 0, 0, state->levels, 0, shard.sums->left};
        gate = {&barrier->arrived, 0};
        watch.start();
    }
    uint32 marked = 0;
    bool open = true, known = false, quiet = true, joined = false;
    pass(gate);  // all have read the state
    while (true) {
        if (open) {
            known = round.limits.level > round.limits.last;
            if (known) {
                if (blockIdx.x == 0 && threadIdx.x == 0) state->notes = state->events = 0, state->least = NOTHING;
                __syncthreads();
                if (threadIdx.x == 0) round.limits.last = round.limits.level + WINDOW - 1, course.told = 0;
                pass(gate);
                const int least = look_at_all(shard, round, halves);
                if ((threadIdx.x & 31) == 0 && least < NOTHING) atomicMin(&state->least, least);
            } else {
                look_at_noted(shard, round);
            }
            pass(gate);
            open = false;
            quiet = true;
            watch.note(0);
        }
        const uint32 news = quit | (course.rounds >= most_rounds ? ENOUGH : 0);
        if (joined) {
            if (threadIdx.x == 0) offer = {course.room, 0, 0, news, stop_at, round.limits.level + 1, false, false};
        } else {
            const uint32 most_edges = static_cast<uint32>(shard.mail.most_edges);
            const uint32 all = __ldcg(&state->queued) - course.queued, edges = min(most_edges, all);
            const uint32 events = min(static_cast<uint32>(shard.mail.most_events), __ldcg(&state->events) - course.told);
            if (threadIdx.x == 0) {
                const uint32 spare = all > most_edges ? 0 : most_edges - edges;
                offer = {most_edges, spare, events, news, stop_at, round.limits.level + 1, known, true};
            }
            for (uint32 i = start_of(0); i < marked; i += gridDim.x * blockDim.x) {
                const int half = __ldcg(&shard.leaving[i]);
                if (half >= 0) count[half] = counted(LEFT, round.limits.level);
            }
            send_edges(shard, course.turn + 1, course.queued, edges);
            settle_alarms(shard, course, count);
            send_events(shard, round, course, events);
            marked = 0;
        }
        watch.note(1);
        const Arrived& came = meet(gate, shard, course, offer);
        watch.note(2);
        if (came.news & LOST) break;
        const uint32 before = marked;
        marked += came.edges;
        if (!marked && !(came.news & (SOME_TOLD | SOME_WAIT))) {
            if (joined) settle_alarms(shard, course, count);  // nothing was removed since: there is nothing to report
            joined = false;
            __syncthreads();
            if (threadIdx.x == 0) round.limits.level = max(round.limits.level + 1, quiet ? came.least : 0);
            __syncthreads();
            if (!course.left || (came.news & (FEW_LEFT | ENOUGH | QUIT))) break;
            open = true;
            continue;
        }
        const bool told = came.news & SOME_TOLD;
        known = false;
        if (came.edges) mark(shard, round, came, before);
        if (told) receive(shard, round, course, came);
        joined = told;
        if (joined) {
            watch.note(3);
            continue;
        }
        const bool changed = came.edges || told;
        __syncthreads();
        if (threadIdx.x == 0 && marked) {
            round.limits.silent = marked > course.left / MANY;
            course.left -= marked;
            course.levels += quiet;
            ++course.rounds;
            if (round.limits.silent) course.told = 0;
        }
        quiet = quiet && !marked;
        if (changed) {
            pass(gate);
        } else {
            __syncthreads();
        }
        watch.note(3);
        if (!marked) continue;
        if (round.limits.silent && blockIdx.x == 0 && threadIdx.x == 0) state->notes = 0, state->events = 0;
        run_round(
            work, {row, entry, table, filter}, count, round, {shard.departing, marked}, state->counters, shard.heavy, gate);
        if (round.limits.silent) {
            look_at_all(shard, round, halves);
            pass(gate);
        }
        watch.note(4);
    }
    if (work.triangles[threadIdx.x & 31]) {
        atomicAdd(&shard.sums->triangles, static_cast<unsigned long long>(work.triangles[threadIdx.x & 31]));
    }
    if ((threadIdx.x & 31) == 0) atomicAdd(&shard.sums->entries, work.entries);
    pass(gate);
    if (blockIdx.x == 0 && threadIdx.x == 0) {
        watch.stop(shard.sums);
        state->queued = state->notes = state->events = state->told[0] = state->told[1] = 0;
        state->level = round.limits.level;
        state->levels = course.levels;
        state->news = seen(reinterpret_cast<const uint32*>(&shard.mail.meeting->said[0].word[2]));
        state->rounds += course.rounds;
        shard.sums->left = course.left;
    }
}

// The halves of edges that stand go from the shard of the low end to that of the high end, where `sum` is to be the whole count.
extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) gather_halves(
    const Shard* __restrict__ given, Barrier* barrier, uint32 halves, const uint4* __restrict__ row, const int2* __restrict__ entry,
    const Bucket* __restrict__ table, const unsigned short* __restrict__ filter, const int* __restrict__ count, int* sum) {
    __shared__ Shard shard;
    if (threadIdx.x == 0) shard = *given;
    __syncthreads();
    const Rows rows = {row, entry, table, filter};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 most = static_cast<uint32>(shard.mail.most_events);
    __shared__ Course course;
    __shared__ Gate gate;
    if (threadIdx.x == 0) {
        course = {seen(&shard.mail.meeting->turn), 0, 0, 0, 0, 0, 0, 0};
        gate = {&barrier->arrived, 0};
    }
    uint32 news = SOME_WAIT;
    pass(gate);
    for (uint32 base = 0; news & (SOME_TOLD | SOME_WAIT); base += min(most, halves - base)) {
        const uint32 stop = base + min(most, halves - base);
        for (uint32 half = base + thread; half < stop; half += threads) {
            const int now = count[half];
            const uint2 ends = ends_of(shard, half);
            if (!stands(now) || class_of(shard.cut, ends.y) == shard.cut.own) continue;
            send_message(shard, course.turn + 1, ends, count_of(now), REPORT);
        }
        const Arrived& came = meet(gate, shard, course, {0, 0, 0, stop < halves ? SOME_WAIT : 0, 0, 0, false, false});
        news = came.news;
        if (news & LOST) break;
        int received = 0, faults = 0;
        for (uint32 q = 0; q < shard.cut.shards; ++q) {
            const uint4* box = reinterpret_cast<const uint4*>(messages_in(shard.mail, course.turn, q));
            for (uint32 i = thread, size = came.messages[q]; i < size; i += threads) {
                const uint4 one = __ldcg(&box[i]);
                const int half = half_of(rows, shard.cut, one.x, one.y);
                if (half >= 0) sum[half] += static_cast<int>(one.z);
                ++(half < 0 ? faults : received);
            }
        }
        add_up(&shard.sums->received, received);
        add_up(&shard.sums->faults, faults);
    }
    pass(gate);
    if (thread == 0) shard.state->news = news;
}
