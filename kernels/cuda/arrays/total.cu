// The sum of all values of an array.
//
// Computes  kernels.total. Adds the sum to *sum, which is 0 at the start.
// Threads   stride over the values and read each once. Each block makes one atomic addition to *sum.
#include "common.cuh"

template <typename Value>
__device__ void add_all(const Value* __restrict__ values, int64 count, unsigned long long* sum) {
    __shared__ int64 of_warp[32];
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    int64 own = 0;
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride) own += values[i];
    for (int step = 16; step; step /= 2) own += __shfl_xor_sync(ALL_LANES, own, step);
    if (!(threadIdx.x & 31)) of_warp[threadIdx.x / 32] = own;
    __syncthreads();
    if (threadIdx.x) return;
    for (int warp = 1; warp < blockDim.x / 32; warp++) own += of_warp[warp];
    if (own) atomicAdd(sum, static_cast<unsigned long long>(own));
}

extern "C" __global__ void total_bool(const bool* __restrict__ values, int64 count, unsigned long long* sum) {
    add_all(values, count, sum);
}

extern "C" __global__ void total_int32(const int* __restrict__ values, int64 count, unsigned long long* sum) {
    add_all(values, count, sum);
}
