// The sum, or the largest, of the values with each index.
//
// Computes  kernels.scatter_sum and kernels.scatter_max. `found` is 0 at the start.
// Threads   stride over the values and read each once. Values of neighbouring lanes with one index are combined first;
//           otherwise the atomics of sorted indices would wait for each other.
#include "common.cuh"

template <typename Found, typename Combine, typename Add>
__device__ void scatter(const int* __restrict__ index, const int* __restrict__ values, int64 count, Found* found, Combine combine, Add add) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    const int lane = threadIdx.x & 31;
    for (int64 first = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x - lane; first < count; first += stride) {
        const bool is_own = first + lane < count;
        const int own = is_own ? index[first + lane] : -1;
        const int before = __shfl_up_sync(ALL_LANES, own, 1);
        const uint32 starts = __ballot_sync(ALL_LANES, !lane || own != before);
        const int start = 31 - __clz(starts & (ALL_LANES >> (31 - lane)));  // of the lane's run of equal indices
        Found value = is_own ? values[first + lane] : 0;
        for (int step = 1; step < 32; step *= 2) {
            const Found other = __shfl_up_sync(ALL_LANES, value, step);
            if (lane - step >= start) value = combine(value, other);
        }
        const bool is_last = lane == 31 || starts >> (lane + 1) & 1;
        if (is_own && is_last) add(found + own, value);
    }
}

extern "C" __global__ void scatter_sum(const int* __restrict__ index, const int* __restrict__ values, int64 count, unsigned long long* found) {
    scatter(
        index, values, count, found,
        [](unsigned long long a, unsigned long long b) { return a + b; },
        [](unsigned long long* slot, unsigned long long value) { atomicAdd(slot, value); }
    );
}

extern "C" __global__ void scatter_max(const int* __restrict__ index, const int* __restrict__ values, int64 count, int* found) {
    scatter(
        index, values, count, found,
        [](int a, int b) { return max(a, b); },
        [](int* slot, int value) { atomicMax(slot, value); }
    );
}
