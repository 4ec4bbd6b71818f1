// Shared by several kernels: the hash of vertices, warp-wide reductions, shares of work, and a barrier of the whole grid.
#pragma once

typedef long long int64;
typedef unsigned int uint32;

constexpr int GONE = GONE_COUNT;  // count of an edge that was removed in an earlier round

constexpr uint32 EMPTY = 0xFFFFFFFFu;
constexpr uint32 ALL_LANES = 0xFFFFFFFFu;

__device__ __forceinline__ uint32 scramble(int vertex) {
    return static_cast<uint32>(vertex) * 0x9E3779B1u;  // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4)
}

// The row of an entry of a CSR: the last row that starts at the entry or before it. Lanes of a warp that ask for
// neighbouring entries read the same words.
__device__ __forceinline__ int64 row_containing(const int64* __restrict__ offsets, int64 rows, int64 entry) {
    int64 row = 0, after = rows;
    while (after - row > 1) {
        const int64 middle = (row + after) / 2;
        (offsets[middle] <= entry ? row : after) = middle;
    }
    return row;
}

// The sum, and the minimum, of the values of all lanes. Every lane gets the result. Compute capability 8.0 has
// instructions for both.
__device__ __forceinline__ int warp_sum(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_add_sync(ALL_LANES, value);
#else
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    return value;
#endif
}

__device__ __forceinline__ int warp_min(int value) {
#if __CUDA_ARCH__ >= 800
    return __reduce_min_sync(ALL_LANES, value);
#else
    for (int step = 16; step; step /= 2) value = min(value, __shfl_xor_sync(ALL_LANES, value, step));
    return value;
#endif
}

// The bitwise or of the values of all lanes. Every lane gets the result.
__device__ __forceinline__ uint32 warp_or(uint32 bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(ALL_LANES, bits);
#else
    for (int step = 16; step; step /= 2) bits |= __shfl_xor_sync(ALL_LANES, bits, step);
    return bits;
#endif
}

// The inclusive prefix sum over the lanes of a warp.
__device__ __forceinline__ uint32 sum_up_to(uint32 value) {
    for (int step = 1; step < 32; step *= 2) {
        const uint32 before = __shfl_up_sync(ALL_LANES, value, step);
        if ((threadIdx.x & 31) >= step) value += before;
    }
    return value;
}

__device__ __forceinline__ uint32 seen(const uint32* word) {
    return *static_cast<const volatile uint32*>(word);
}

__device__ __forceinline__ int64 nanoseconds() {
    int64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

// The first of the next `chunk` items of a warp, >= `end` if no items are left. The warp's number gives its first
// chunk, the cursor gives further chunks.
__device__ __forceinline__ uint32 next_items(uint32* cursor, uint32 chunk, uint32 end, uint32 warps) {
    if (warps * chunk >= end) return end;
    uint32 taken = 0;
    if ((threadIdx.x & 31) == 0) taken = warps * chunk + atomicAdd(cursor, chunk);
    return __shfl_sync(ALL_LANES, taken, 0);
}

struct Barrier {
    uint32 arrived;
    uint32 turn;
    uint32 seen;
};

// Each block of a cooperative launch waits for all others. Returns the value of `watched` when the last block arrived. (A read
// after the barrier may return a newer value, because another block may have continued.) `barrier` is 0 at the start.
__device__ __forceinline__ uint32 grid_barrier(Barrier* barrier, const uint32* watched) {
    __shared__ uint32 value;
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile Barrier* shared = barrier;
        const uint32 turn = shared->turn;
        __threadfence();
        if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
            shared->arrived = 0;
            shared->seen = *static_cast<const volatile uint32*>(watched);
            __threadfence();
            shared->turn = turn + 1;
        } else {
            while (shared->turn == turn) {
            }
        }
        __threadfence();
        value = shared->seen;
    }
    __syncthreads();
    return value;
}
