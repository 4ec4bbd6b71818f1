// Hash tables of sets in shared memory, and lookups of other sets in these tables. For intersect.cu and
// shards/third_vertex.cu.
//
// A team of TEAM threads, a warp or a block, builds one table and looks up at most PART sets in it. The table of a hub,
// in which more sets are looked up, is built by several teams. Each warp of a team looks up one set at a time, and
// streams the members of this set from memory.
#pragma once
#include "common.cuh"

#ifndef SIDE
#define SIDE 0
#endif
#ifndef WARPS
#define WARPS 8
#endif
#ifndef ONE_WARP  // 1: a team is a warp; 0: a team is the whole block
#define ONE_WARP 1
#endif
#ifndef SLOTS
#define SLOTS 128
#endif

constexpr int TEAM = ONE_WARP ? 32 : 32 * WARPS;
constexpr int MEMBERS = SLOTS / 2;  // most members of a table at a time; larger sets take several passes
constexpr int PER_LANE = 4;
constexpr int BUILDING = 4;  // cost of adding a member to a table, in lookups

__device__ __forceinline__ void team_barrier() {
#if ONE_WARP
    __syncwarp();
#else
    __syncthreads();
#endif
}

// The number of the next table of the team. All threads of the team get it.
__device__ __forceinline__ int next_turn(unsigned long long* cursor) {
#if ONE_WARP
    int turn;
    if ((threadIdx.x & 31) == 0) turn = static_cast<int>(min(atomicAdd(cursor, 1ull), 0x7FFFFFFFull));
    return __shfl_sync(ALL_LANES, turn, 0);
#else
    __shared__ int taken;
    if (threadIdx.x == 0) taken = static_cast<int>(min(atomicAdd(cursor, 1ull), 0x7FFFFFFFull));
    __syncthreads();
    return taken;
#endif
}

struct Table {
    uint32* key;  // EMPTY in a free slot
    int* hits;
    uint32 mask;
    int shift;

    __device__ __forceinline__ int slot_of(uint32 vertex) const {
        uint32 at = scramble(vertex) >> shift;
        while (true) {
            const uint32 there = key[at];
            if (there == vertex) return static_cast<int>(at);
            if (there == EMPTY) return -1;
            at = (at + 1) & mask;
        }
    }

    // Builds the table of `size` members, at most MEMBERS. Skips members that are EMPTY.
    __device__ __forceinline__ void fill(const uint32* __restrict__ members, int size, int thread) {
        const int bits = min(34 - __clz(max(size - 1, 1)), 31 - __clz(SLOTS));  // a quarter full if there are enough slots
        shift = 32 - bits;
        mask = (1u << bits) - 1;
        for (uint32 s = thread; s <= mask; s += TEAM) key[s] = EMPTY, hits[s] = 0;
        team_barrier();
        for (int i = thread; i < size; i += TEAM) {
            const uint32 vertex = members[i];
            uint32 at = scramble(vertex) >> shift;
            while (vertex != EMPTY && atomicCAS(&key[at], EMPTY, vertex) != EMPTY) at = (at + 1) & mask;
        }
        team_barrier();
    }

    // Adds the hits of each member to its count.
    __device__ __forceinline__ void flush(const uint32* __restrict__ members, int size, int thread, int* counts) const {
        team_barrier();
        for (int i = thread; i < size; i += TEAM) {
            const uint32 vertex = members[i];
            const int at = vertex == EMPTY ? -1 : slot_of(vertex);
            if (at >= 0 && hits[at]) atomicAdd(&counts[i], hits[at]);
        }
        team_barrier();
    }

    // A warp looks up the set `members[row .. stop)`. For each member that the table contains, it adds one to the hits
    // of the member's slot and to the member's entry of `counts`. Returns the number of members that this lane found.
    __device__ __forceinline__ int stream(const uint32* members, int64 row, int64 stop, int lane, int* counts) const {
        int found = 0;
        for (int64 base = row; base < stop; base += 32 * PER_LANE) {
            uint32 c[PER_LANE];
#pragma unroll
            for (int k = 0; k < PER_LANE; ++k) {
                const int64 j = base + 32 * k + lane;
                c[k] = j < stop ? members[j] : EMPTY;
            }
#pragma unroll
            for (int k = 0; k < PER_LANE; ++k) {
                const int at = c[k] == EMPTY ? -1 : slot_of(c[k]);
                if (at >= 0) {
                    atomicAdd(&hits[at], 1);
                    atomicAdd(&counts[base + 32 * k + lane], 1);
                    ++found;
                }
            }
        }
        return found;
    }
};
