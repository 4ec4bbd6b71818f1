// The word of an entry: the state of its edge. Counts are stored in two halves (docs/shards.md, "A round").
//
// The number of triangles that an edge has left is the sum of two halves, one in the word of each of its two entries.
// Levels are taken in windows; `last` is the last level of the window, and last / 2 the alarm. While both halves are
// above the alarm the edge cannot leave within the window. When a half is not, the edge is examined between two rounds.
// If two equal halves would be above the alarm, the halves are made equal. Otherwise one of the two entries, the
// keeper, gets the whole count, and the other entry becomes a reporter.
//
// split      the half, below 2^27; may be less than 0 within a round
// keeper     KEEPER + the whole count
// reporter   REPORTER: the other entry has the whole count
// locked     LOCKED, in the entry of the lower end, while one thread changes both words
// leaves     LEAVES + the round in which the edge leaves; the round gives the level (see `starts` in peel.cu)
// vacant     VACANT, in a slot without an entry
//
// The word of an entry changes its kind only between rounds. So the kind that a thread reads is valid for the whole
// round.
#pragma once
#include "common.cuh"

constexpr int ROLE = 1 << 28;
constexpr int KEEPER = ROLE;
constexpr int REPORTER = 2 * ROLE;
constexpr int LOCKED = 3 * ROLE;
constexpr int LEAVES = -0x7FFFFFFF - 1;
constexpr int VACANT = -ROLE - 1;

__device__ __forceinline__ bool stands(int word) {
    return word >= -ROLE;
}

__device__ __forceinline__ bool is_split(int word) {
    return stands(word) && word < ROLE / 2;
}

__device__ __forceinline__ bool is_keeper(int word) {
    return word >= KEEPER - ROLE / 2 && word < KEEPER + ROLE / 2;
}

__device__ __forceinline__ int leaves_in(uint32 round) {
    return LEAVES + static_cast<int>(round);
}
