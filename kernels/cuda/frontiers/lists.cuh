// Lists to which many warps append.
#pragma once
#include "common.cuh"

constexpr int STEPS = 16;  // items that a lane examines before its warp appends to a list

// Appends the `item` of each lane of a warp for which `has` is true, with one atomic.
__device__ __forceinline__ void append(int* list, uint32* size, bool has, int item) {
    const uint32 lanes = __ballot_sync(ALL_LANES, has);
    if (!lanes) return;
    const int lane = threadIdx.x & 31;
    uint32 base = 0;
    if (lane == 0) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    base = __shfl_sync(ALL_LANES, base, 0);
    if (has) list[base + __popc(lanes & ((1u << lane) - 1))] = item;
}

// Appends the items of a warp in order: item first + 32 s + lane for each lane and each bit s that is set in its `has`.
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

// Reserves a slot for each thread that calls this together with others of its warp, with one atomic.
__device__ __forceinline__ uint32 reserve_slot(uint32* size) {
    const uint32 lanes = __activemask();
    const int lane = threadIdx.x & 31, leader = __ffs(lanes) - 1;
    uint32 base = 0;
    if (lane == leader) base = atomicAdd(size, static_cast<uint32>(__popc(lanes)));
    return __shfl_sync(lanes, base, leader) + __popc(lanes & ((1u << lane) - 1));
}

// Adds the values of the lanes of a warp to `sum`, with one atomic.
__device__ __forceinline__ void add_sum(unsigned long long* sum, int value) {
    const int all = warp_sum(value);
    if (all && (threadIdx.x & 31) == 0) atomicAdd(sum, static_cast<unsigned long long>(all));
}
