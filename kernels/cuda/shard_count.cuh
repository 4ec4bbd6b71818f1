// The count of an edge in halves, one beside each of its two entries; kernels/cpu/shards/halves.py has the rules.
//
// A half is one int: 2^28 times its role, and the count, which is in [-2^27, 2^27). Decrements by atomics do not disturb the role,
// and what a decrement gives back tells all that follows from it.
#pragma once
#include "common.cuh"

constexpr int OWN = 0;       // of an edge inside the class: its only half
constexpr int KEEPER = 1;    // has the whole count, as far as it was told
constexpr int SPLIT = 2;     // so has the other half
constexpr int REPORTER = 3;  // what was removed here since the last report: 0 or less; the other half keeps the count
constexpr int ALARMED = 4;   // has given its count to the other half, in the last exchange
constexpr int QUEUED = -1;   // of an edge that stands, but will leave at this level
constexpr int LEAVING = -2;  // leaves in this round
constexpr int LEFT = -4;     // has left; the count is the level

constexpr int ROLE = 1 << 28;

__device__ __forceinline__ int counted(int role, int count) {
    return role * ROLE + count;
}

__device__ __forceinline__ int role_of(int half) {
    return (half + ROLE / 2) >> 28;
}

__device__ __forceinline__ int count_of(int half) {
    return half - role_of(half) * ROLE;
}

__device__ __forceinline__ bool stands(int half) {
    return half >= QUEUED * ROLE - ROLE / 2;
}

__device__ __forceinline__ bool leaves(int half) {
    return role_of(half) == LEAVING;
}
