// Peeling on compact rows, level by level: level k removes edges with at most k triangles, with λ = k, until every
// edge has more than k triangles.
//
// Computes  levels from state.level on, until at most `stop_at` edges are left or `most_rounds` rounds have run. Writes
//           to the words of each edge that left the round in which it left, and to `starts` the first round and the
//           number of each level with edges.
// Needs     all blocks run at the same time (a cooperative launch); the capacity of the ring is a power of two;
//           `starts` has space for all levels with edges; state.last < state.level after rows were rebuilt.
// Lists     If a list is full, a later read of all words finds the edges that did not fit.
// Rounds    remove.cuh has the removal, look.cuh the work between two rounds.
// Source    PKT (Kabir and Madduri, "Parallel k-truss decomposition on multicore systems", HPEC 2017); counts in halves:
//           docs/shards.md.
#include "compact/look.cuh"
#include "compact/remove.cuh"

constexpr int NEAR = 8;   // number of levels of a window
constexpr int MANY = 16;  // all words are read after a round that removes more than one in MANY of the remaining edges

// Removes the edges beyond the capacity of the ring. Returns whether there were any. All blocks call this.
__device__ __forceinline__ bool cut(Said& said, const Lists& lists, uint32 base, Meeting* meeting) {
    if (said.tail - base <= lists.ring_room) return false;
    said.tail = base + lists.ring_room;
    if (blockIdx.x == 0 && threadIdx.x == 0) lists.state->tail = said.tail;
    meet(meeting, lists.state);
    return true;
}

extern "C" __global__ void __launch_bounds__(32 * WARPS, BLOCKS) peel(
    const Row* __restrict__ row, uint32* key, int* word, uint32* far_key, int64 far, const unsigned short* __restrict__ filter,
    const uint32* __restrict__ row_at, int64 slots, State* state, Meeting* meeting, uint2* ring, uint32 ring_room, uint2* alarm, uint32 alarm_room, uint2* noted,
    uint32 noted_room, uint4* heavy, uint2* starts, unsigned long long stop_at, uint32 most_rounds) {
    extern __shared__ char shared[];
    Work& work = reinterpret_cast<Work*>(shared)[threadIdx.x >> 5];
    int64* const kept = reinterpret_cast<int64*>(work.wanted);
    const Rows rows = rows_of(row, key, word, far_key, far, filter);
    const Lists lists = {state, ring, alarm, noted, ring_room, alarm_room, noted_room, heavy};
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x;
    unsigned long long left = state->left;
    uint32 levels = state->levels, round = state->round, begun = 0;
    const uint32 last_round = round + most_rounds;
    int level = state->level, last = state->last;
    Said said = meet(meeting, state);  // all blocks have read the state
    while (left > stop_at && round < last_round) {
        const bool all = level > last || said.notes > noted_room;
        if (all) {
            last = level + NEAR - 1;
            if (thread == 0) state->notes = 0, state->least = NOTHING;
            meet(meeting, state);
            look_at_all(rows, row_at, slots, lists, {level, last / 2, round, begun, false}, kept);
        } else {
            look_at_listed(rows, lists, {level, last / 2, round, begun, false}, noted, said.notes);
        }
        if (thread < 3) state->counters[round % 3][thread] = 0;
        said = meet(meeting, state);
        bool behind = cut(said, lists, begun, meeting);
        uint32 end = said.tail;
        if (begun == end) {
            level = max(level + 1, all ? said.least : level + 1);
            continue;
        }
        ++levels;
        if (thread == 0) starts[levels - 1] = make_uint2(round, static_cast<uint32>(level));
        while (begun != end || behind) {
            left -= end - begun;
            const bool silent = behind || end - begun > left / MANY;
            behind = false;
            if (thread < 3) state->counters[(round + 1) % 3][thread] = 0;
            if (begun != end) {
                said = run_round(
                    work, begun, end, state->counters[round % 3], meeting, rows, lists,
                    {level, last / 2, round, begun, silent});
                behind = cut(said, lists, begun, meeting);
            }
            ++round;
            const Limits next = {level, last / 2, round, end, false};
            mark(rows, lists, leaves_in(round), end, said.tail);
            begun = end;
            const bool read_all = silent || behind || said.alarms > alarm_room;
            if (read_all) {
                behind = false;
                if (thread == 0) state->notes = state->alarms = 0;
                meet(meeting, state);
                look_at_all(rows, row_at, slots, lists, next, kept);
                said = meet(meeting, state);
                behind = cut(said, lists, begun, meeting);
            } else if (said.alarms || said.tail != end) {
                if (thread == 0) state->alarms = 0;
                look_at_listed(rows, lists, next, alarm, said.alarms);
                said = meet(meeting, state);
                behind = cut(said, lists, begun, meeting);
            }
            end = said.tail;
        }
        ++level;
    }
    meet(meeting, state);
    if (thread == 0) {
        state->left = left;
        state->level = level;
        state->last = last;
        state->round = round;
        state->levels = levels;
        state->tail = state->alarms = 0;
    }
}
