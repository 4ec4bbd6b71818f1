// What several kernels share: marks of fallen edges, the hash of a row, a barrier of the whole grid.
#pragma once

typedef long long int64;
typedef unsigned int uint32;

// As in kernels/graph.py.
constexpr int CURRENT = -(1 << 29);
constexpr int GONE = -(1 << 30);

constexpr uint32 EMPTY = 0xFFFFFFFFu;
constexpr uint32 ALL_LANES = 0xFFFFFFFFu;

__device__ __forceinline__ uint32 scramble(int vertex) {
    return static_cast<uint32>(vertex) * 0x9E3779B1u;  // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4)
}

// The same for all lanes: their sum, and their least. Whole-warp instructions exist from compute capability 8.0 on.
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

// The same for all lanes: all of their bits.
__device__ __forceinline__ uint32 warp_or(uint32 bits) {
#if __CUDA_ARCH__ >= 800
    return __reduce_or_sync(ALL_LANES, bits);
#else
    for (int step = 16; step; step /= 2) bits |= __shfl_xor_sync(ALL_LANES, bits, step);
    return bits;
#endif
}

// For each lane the sum of the values of all lanes up to it.
__device__ __forceinline__ uint32 sum_up_to(uint32 value) {
    for (int step = 1; step < 32; step *= 2) {
        const uint32 before = __shfl_up_sync(ALL_LANES, value, step);
        if ((threadIdx.x & 31) >= step) value += before;
    }
    return value;
}

__device__ __forceinline__ uint32 seen(const uint32* place) {
    return *static_cast<const volatile uint32*>(place);
}

__device__ __forceinline__ int64 nanoseconds() {
    int64 now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

struct Barrier {
    uint32 arrived;
    uint32 turn;
    uint32 seen;
};

// Every block of a cooperative launch waits for all others; gives what `watched` was when the last one came. (Read after the
// barrier it may be newer: another block may have gone on and changed it.) All of `barrier` starts at 0.
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
