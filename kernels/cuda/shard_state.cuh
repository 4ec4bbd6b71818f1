// What one shard has on the device, and where it is between two meetings.
#pragma once
#include "shard_round.cuh"

constexpr int WINDOW = 4;  // levels
constexpr int MANY = 64;   // the part of all edges that leaves in a round, after which all halves are looked at
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

__device__ __forceinline__ uint2 ends_of(const Shard& shard, int half) {
    return make_uint2(shard.low[half], shard.high[half]);
}

// Of four loops that follow each other: where this thread starts, so that short ones run side by side.
__device__ __forceinline__ uint32 start_of(uint32 which) {
    const uint32 block = blockIdx.x + gridDim.x - (which * gridDim.x >> 2);
    return (block < gridDim.x ? block : block - gridDim.x) * blockDim.x + threadIdx.x;
}
