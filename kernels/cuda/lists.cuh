// Lists that many warps append to.
#pragma once
#include "common.cuh"

constexpr int STEPS = 16;  // items that a lane looks at before a warp appends what it has found

// Appends together what the lanes of a warp have.
__device__ __forceinline__ void append(int* list, uint32* size, bool has, int item) {
    const uint32 lanes = __ballot_sync(ALL_LANES, has);
    if (!lanes) return;
    const int lane = threadIdx.x & 31;
    uint32 base = 0;
    if (lane == 0) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    base = __shfl_sync(ALL_LANES, base, 0);
    if (has) list[base + __popc(lanes & ((1u << lane) - 1))] = item;
}

// Appends in order what a warp has: the item first + 32 s + lane where bit s of a lane's `has` is set.
__device__ __forceinline__ void append_all(int* list, uint32* size, uint32 has, uint32 first) {
    const int all = warp_sum(__popc(has)), lane = threadIdx.x & 31;
    if (!all) return;
    uint32 base = 0;
    if (lane == 0) base = atomicAdd(size, static_cast<uint32>(all));
    base = __shfl_sync(ALL_LANES, base, 0);
    for (int step = 0; step < STEPS; ++step) {
        const uint32 lanes = __ballot_sync(ALL_LANES, has >> step & 1);
        if (has >> step & 1) list[base + __popc(lanes & ((1u << lane) - 1))] = first + 32 * step + lane;
        base += __popc(lanes);
    }
}

// Room for one item of each thread that asks together.
__device__ __forceinline__ uint32 room_for_one(uint32* size) {
    const uint32 lanes = __activemask();
    const int lane = threadIdx.x & 31, leader = __ffs(lanes) - 1;
    uint32 base = 0;
    if (lane == leader) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    return __shfl_sync(lanes, base, leader) + __popc(lanes & ((1u << lane) - 1));
}

// Adds what the lanes of a warp have.
__device__ __forceinline__ void add_up(unsigned long long* sum, int value) {
    const int all = warp_sum(value);
    if (all && (threadIdx.x & 31) == 0) atomicAdd(sum, static_cast<unsigned long long>(all));
}
