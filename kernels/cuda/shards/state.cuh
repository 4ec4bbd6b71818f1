// The state of one shard in GPU memory, and its progress between two meetings.
#pragma once
#include "shards/round.cuh"

constexpr int WINDOW = 4;  // levels
constexpr int MANY = 64;  // all halves are scanned after a round that removes more than one in MANY of the remaining edges
constexpr int NOTHING = 0x7FFFFFFF;

// The state that kernels/gpu/shards/peel.py reads and writes too. Lists and counters are empty between two launches.
struct State {
    uint32 queued;
    uint32 candidates;
    uint32 events;
    uint32 alarms[2];
    uint32 counters[3];
    int least;
    uint32 halves;  // halves that remain
    int level;
    uint32 levels;  // levels that removed edges
    uint32 news;
    uint32 rounds;
    uint32 exchanges;
    uint32 edges_sent;
};
static_assert(sizeof(State) == 4 * STATE_WORDS, "the layout that Python reads");

// Sums over all launches.
struct Sums {
    unsigned long long left;  // remaining edges of all shards
    unsigned long long entries;
    unsigned long long triangles;
    unsigned long long fingerprint;
    unsigned long long sent;
    unsigned long long received;
    unsigned long long alarms;
    unsigned long long reports;
    unsigned long long grants;
    unsigned long long faults;  // halves that were not found, or were in a wrong role
    unsigned long long spent[5];  // nanoseconds: scanning halves, writing, meeting, receiving, removing
};
static_assert(sizeof(Sums) == 8 * SUMS_WORDS, "the layout that Python reads");

// In the layout of kernels/gpu/shards/peel.py.
struct Shard {
    Cut cut;
    uint32 room;  // capacity of the ring of events
    Mail mail;
    State* state;
    Sums* sums;
    int* queue;
    int* candidates;
    int* events;
    int2* alarmed[2];  // halves that sent an alarm, and their counts
    int* removing;  // the halves of the removed edges of a round; -1 for edges of other shards
    uint2* heavy;
    const uint32* low;
    const uint32* high;
    uint2* removed_ends;  // the ends of the removed edges of a round
};

// The progress of a shard between two meetings. The first warp of a block changes it while no other warp reads it.
struct Progress {
    uint32 turn;
    uint32 exchanges;  // exchanges, without the second meetings of rounds
    uint32 edges_sent;  // queued edges that have been sent
    uint32 events_sent;  // events of the ring that have been handled
    uint32 added_edges;  // edges that may be added to the next meeting because of messages
    uint32 levels;
    uint32 rounds;  // rounds of this launch
    unsigned long long left;
};

// The input of a block to a meeting, equal in all blocks of a shard. The first warp of the block reads it.
struct Contribution {
    uint32 max_edges;  // most edges of this meeting
    uint32 added_edges;  // edges that may be added to the next meeting because of messages
    uint32 events_sent;  // events that have been handled
    uint32 news;
    uint32 stop_at;
    int least;
    bool least_known;  // the state contains the least count
    bool is_exchange;
};

__device__ __forceinline__ uint2 ends_of(const Shard& shard, int half) {
    return make_uint2(shard.low[half], shard.high[half]);
}

// The index at which this thread starts loop `which` of four consecutive loops. Each loop starts at another block, so
// short loops run on different blocks at the same time.
__device__ __forceinline__ uint32 start_of(uint32 which) {
    const uint32 block = blockIdx.x + gridDim.x - (which * gridDim.x >> 2);
    return (block < gridDim.x ? block : block - gridDim.x) * blockDim.x + threadIdx.x;
}
