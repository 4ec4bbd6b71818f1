// Peeling of one shard in step with all others, level by level; shard_round.cuh has the round, shard_mail.cuh the meetings.
//
// Computes  levels from state.level on, until no edge is left, few enough are left in a shard, `most_rounds` rounds have run or one
//           wants to quit: all shards stop at the end of the same level. Leaves the level in the halves of edges that left.
// Protocol  that of kernels/cpu/shards/halves.py. A turn of the loop is: write edges that leave and messages; meet; take in what
//           came; remove the edges' triangles. A level is over when a meeting brings nothing to any shard.
// Needs     all blocks of all shards running at once; room in `queue`, `noted` for all halves, in the ring of events for them and
//           twice most_events, in `leaving` for most_edges of each shard.
// Reads     at the start of a window of levels, and after rounds in which more than one edge in MANY leaves, all halves (4 bytes
//           each); at its other levels the noted ones.
#include "shard_round.cuh"

#ifndef WINDOW
#define WINDOW 4  // levels
#endif
#ifndef PROFILE
#define PROFILE 0
#endif
#ifndef JOIN
#define JOIN 1  // what messages make leave goes with the round that they came in
#endif
#ifndef MANY
#define MANY 64  // the part of all edges that leaves in a round, after which all halves are looked at
#endif
constexpr int NOTHING = 0x7FFFFFFF;

// As shards.py reads and writes it. Lists and counters are empty between two launches.
struct State {
    uint32 queued;
    uint32 notes;
    uint32 events;
    uint32 told[2];
    uint32 counters[3];
    int least;
    uint32 halves;  // that stand
    int level;
    uint32 levels;  // at which edges left
    uint32 news;
    uint32 rounds;
    uint32 exchanges;
    uint32 edges_told;
};

// Sums over all launches.
struct Sums {
    unsigned long long left;  // edges of all shards
    unsigned long long entries;
    unsigned long long triangles;
    unsigned long long fingerprint;
    unsigned long long sent;
    unsigned long long received;
    unsigned long long alarms;
    unsigned long long reports;
    unsigned long long grants;
    unsigned long long faults;  // halves that were not found, or not as they must be
    unsigned long long spent[5];  // nanoseconds: looking at halves, writing, meeting, taking in, removing
};

// As shards.py lays it out.
struct Shard {
    Cut cut;
    uint32 room;  // of the ring of events
    Mail mail;
    State* state;
    Sums* sums;
    int* queue;
    int* noted;
    int* event;
    int2* told[2];  // halves that gave an alarm, and their counts
    int* leaving;   // the halves here of the edges of a round, -1 for none
    uint2* heavy;
    const uint32* low;
    const uint32* high;
    uint2* departing;  // the edges of a round
};

// Where a shard is between two meetings. A block's first warp changes it while the others do not read it.
struct Course {
    uint32 turn;
    uint32 written;  // exchanges that brought what was written, not only what messages made leave
    uint32 queued;   // edges of the queue that were sent
    uint32 told;     // events of the ring that were
    uint32 room;     // for edges that messages make leave, in the next exchange
    uint32 levels;
    uint32 rounds;   // of this launch
    unsigned long long left;
};

// What a block brings to a meeting; the same for all blocks of a shard. Its first warp reads it there.
struct Offer {
    uint32 room;    // edges that may be sent
    uint32 spare;   // and how many more in the next exchange, by messages
    uint32 events;  // that were told
    uint32 news;
    uint32 stop_at;
    int least;
    bool known;     // the least count is in the state
    bool written;
};

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

// Of four loops that follow each other: where this thread starts, so that short ones run side by side.
__device__ __forceinline__ uint32 start_of(uint32 which) {
    const uint32 block = blockIdx.x + gridDim.x - (which * gridDim.x >> 2);
    return (block < gridDim.x ? block : block - gridDim.x) * blockDim.x + threadIdx.x;
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

__device__ __forceinline__ uint2 ends_of(const Shard& shard, int half) {
    return make_uint2(shard.low[half], shard.high[half]);
}

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
#if JOIN
        const uint32 i = place - course.queued;
        for (int64 k = 0; i < course.room && k < shard.mail.copies; ++k) {
            shard.mail.edges[((course.turn + 1) & 1) * shard.mail.copies + k][i] = ends;
        }
#endif
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
        if (joined) {
            if (threadIdx.x == 0) offer = {course.room, 0, 0, quit, stop_at, round.limits.level + 1, false, false};
        } else {
            const uint32 most_edges = static_cast<uint32>(shard.mail.most_edges);
            const uint32 all = __ldcg(&state->queued) - course.queued, edges = min(most_edges, all);
            const uint32 events = min(static_cast<uint32>(shard.mail.most_events), __ldcg(&state->events) - course.told);
            if (threadIdx.x == 0) {
                const uint32 spare = all > most_edges ? 0 : most_edges - edges;
                offer = {most_edges, spare, events, quit, stop_at, round.limits.level + 1, known, true};
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
            if (!course.left || (came.news & (FEW_LEFT | QUIT)) || course.rounds >= most_rounds) break;
            open = true;
            continue;
        }
        const bool told = came.news & SOME_TOLD;
        known = false;
        if (came.edges) mark(shard, round, came, before);
        if (told) receive(shard, round, course, came);
        joined = JOIN && told;
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
