// The count of an edge in two halves, one for each end. kernels/cpu/shards/half_counts.py has the rules.
//
// A half is one int: 2^28 times its role, plus the count, which is in [-2^27, 2^27). An atomic decrement does not change the role,
// and its result is enough to decide what follows.
#pragma once
#include "common.cuh"

constexpr int OWN = 0;  // the only half of an edge with both ends in the class
constexpr int KEEPER = 1;  // has the whole count, less what reporters have not reported
constexpr int SPLIT = 2;  // both halves have a part of the count
constexpr int REPORTER = 3;  // the other half is the keeper; the count, 0 or less, is the loss since the last report
constexpr int ALARMED = 4;  // has sent its count to the other half in the last exchange
constexpr int QUEUED = -1;  // the edge remains, and will be removed at this level
constexpr int LEAVING = -2;  // the edge is removed in this round
constexpr int LEFT = -4;  // the edge has been removed; the count is the level

constexpr int ROLE = HALF_ROLE;
static_assert(LEFT * ROLE == HALF_REMOVED && QUEUED * ROLE - ROLE / 2 == HALF_REMAINS, "Python reads halves");

__device__ __forceinline__ int counted(int role, int count) {
    return role * ROLE + count;
}

__device__ __forceinline__ int role_of(int half) {
    return (half + ROLE / 2) >> 28;
}

__device__ __forceinline__ int count_of(int half) {
    return half - role_of(half) * ROLE;
}

__device__ __forceinline__ bool remains(int half) {
    return half >= QUEUED * ROLE - ROLE / 2;
}

__device__ __forceinline__ bool is_leaving(int half) {
    return role_of(half) == LEAVING;
}
