// The state that the peeling blocks share, and their barrier.
#pragma once
#include "compact/rows.cuh"
#include "compact/word.cuh"

constexpr int NOTHING = 0x7FFFFFFF;

struct State {
    unsigned long long left;  // number of edges that remain
    int level;                // the next level
    int last;                 // last level of the window
    uint32 round;             // number of rounds so far
    uint32 levels;            // number of levels at which edges left
    uint32 tail;              // number of edges that were put into the ring in this launch
    uint32 alarms;            // number of edges in the list of alarms
    uint32 notes;             // number of noted edges
    int least;                // lower bound of the triangles of remaining edges
    uint32 counters[3][3];    // at index round % 3: edges processed, parts of heavy edges, such parts processed
};

// The values of the state that all blocks get from the barrier.
struct Said {
    uint32 tail;
    uint32 alarms;
    uint32 notes;
    int least;
};

struct Meeting {
    uint32 arrived;
    uint32 turn;
    Said said;
};

struct Lists {
    State* state;
    uint2* ring;  // edges that leave, in the order of their rounds; the capacity of the ring is a power of two
    uint2* alarm;
    uint2* noted;
    uint32 ring_room;
    uint32 alarm_room;
    uint32 noted_room;
    uint4* heavy;
};

struct Limits {
    int level;
    int alarm;
    uint32 round;  // the round in which edges leave
    uint32 base;   // first position of the ring that must not be overwritten
    bool silent;   // this round fills no lists: all words are read after it
};

// A barrier over all blocks. Returns the values of the state when the last block arrived. `meeting` is 0 at the start.
__device__ __forceinline__ Said meet(Meeting* meeting, const State* state) {
    __shared__ Said said;
    __syncthreads();
    if (threadIdx.x == 0) {
        const uint32 turn = seen(&meeting->turn);
        __threadfence();
        if (atomicAdd(&meeting->arrived, 1u) == gridDim.x - 1) {
            volatile Meeting* shared = meeting;
            shared->arrived = 0;
            shared->said.tail = seen(&state->tail);
            shared->said.alarms = seen(&state->alarms);
            shared->said.notes = seen(&state->notes);
            shared->said.least = static_cast<int>(seen(reinterpret_cast<const uint32*>(&state->least)));
            __threadfence();
            shared->turn = turn + 1;
        } else {
            while (seen(&meeting->turn) == turn) {
            }
        }
        __threadfence();
        const volatile Meeting* shared = meeting;
        said.tail = shared->said.tail;
        said.alarms = shared->said.alarms;
        said.notes = shared->said.notes;
        said.least = shared->said.least;
    }
    __syncthreads();
    return said;
}

// Reserves a place on a list for each lane of a warp for which `has` is true, with one atomic. Returns the lane's
// place.
__device__ __forceinline__ uint32 room_for(uint32* size, bool has) {
    const uint32 lanes = __ballot_sync(ALL_LANES, has);
    if (!lanes) return 0;
    const int lane = threadIdx.x & 31;
    uint32 base = 0;
    if (lane == 0) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    return __shfl_sync(ALL_LANES, base, 0) + __popc(lanes & ((1u << lane) - 1));
}
