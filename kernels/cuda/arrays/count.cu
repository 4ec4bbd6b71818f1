// How often each index occurs.
//
// Computes  kernels.bincount, and 32-bit counts of ranks. Adds to `counts`, which are 0 at the start.
// Threads   stride over the indices and read each once. Equal indices of neighbouring lanes are added with one atomic;
//           otherwise the atomics of sorted indices would wait for each other. If only `few` indices occur, a block
//           counts in shared memory first: all blocks add to the same counts, and such atomics wait for each other.
#include "common.cuh"

extern __shared__ uint32 own_counts[];

template <typename Index, typename Count>
__device__ void count_runs(const Index* __restrict__ index, int64 count, Count* counts) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    const int lane = threadIdx.x & 31;
    for (int64 first = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x - lane; first < count; first += stride) {
        const bool is_own = first + lane < count;
        const Index own = is_own ? index[first + lane] : Index(-1);
        const Index before = __shfl_up_sync(ALL_LANES, own, 1);
        const uint32 starts = __ballot_sync(ALL_LANES, !lane || own != before);
        if (!is_own || !(starts >> lane & 1)) continue;
        const uint32 later = lane == 31 ? 0 : starts >> (lane + 1);
        const int run = later ? __ffs(later) : 32 - lane;
        atomicAdd(counts + own, static_cast<Count>(run));
    }
}

template <typename Index, typename Count>
__device__ void count_all(const Index* __restrict__ index, int64 count, Count* __restrict__ counts, int few) {
    if (!few) {
        count_runs(index, count, counts);
        return;
    }
    for (int i = threadIdx.x; i < few; i += blockDim.x) own_counts[i] = 0;
    __syncthreads();
    count_runs(index, count, own_counts);
    __syncthreads();
    for (int i = threadIdx.x; i < few; i += blockDim.x)
        if (own_counts[i]) atomicAdd(counts + i, static_cast<Count>(own_counts[i]));
}

extern "C" __global__ void count_int32(const int* __restrict__ index, int64 count, unsigned long long* __restrict__ counts, int few) {
    count_all(index, count, counts, few);
}

extern "C" __global__ void count_int64(const int64* __restrict__ index, int64 count, unsigned long long* __restrict__ counts, int few) {
    count_all(index, count, counts, few);
}

extern "C" __global__ void count_uint32(const uint32* __restrict__ index, int64 count, uint32* __restrict__ counts, int few) {
    count_all(index, count, counts, few);
}
