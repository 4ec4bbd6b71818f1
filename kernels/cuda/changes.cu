// Packets of lowered counts, in the format of kernels/cpu/peeling/filtering.py: one bit for each edge, and an amount for each bit set.
//
// mark      Writes the bit of each edge whose amount is not 0, and the number of bits set in each word. Adds to sums[0]
//           the weighted sum; raises sums[1] to the largest amount.
// write     Packs the amounts in the order of their bits, in one byte or four each, and clears them.
// count     Writes the number of bits set in each word.
// lower     Subtracts `sign` (1 or -1) times the amounts of a packet from values. Adds to the weighted sum.
// weigh     Adds the amounts of a range to the weighted sum.
// subtract  Subtracts the amounts of a range from values. The amounts may be in another GPU. Adds to the weighted sum.
//
// Ranges    begin at edge `first`. The weighted sum is that of kernels/filters.py: the sum over edges of amount times
//           weight, modulo 2^64.
// Threads   A lane for each edge, a warp for each word: all accesses but those of packed amounts are coalesced.
// Needs     `starts` is the number of bits set before each word.
#include "common.cuh"
#include "mix.cuh"

// An odd hash of an edge's number. kernels/cpu/peeling/filtering.py computes the same.
__device__ __forceinline__ uint64 weight(uint32 edge) {
    return mixed(edge) | 1;
}

__device__ __forceinline__ void add_long(uint64* sum, uint64 value) {
    for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
    if (value && (threadIdx.x & 31) == 0) atomicAdd(sum, value);
}

extern "C" __global__ void mark(
    const int* __restrict__ amount, uint32 first, uint32 edges, uint32 size, uint32* word, int* ones, uint64* sums) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5, lane = threadIdx.x & 31;
    uint64 sum = 0;
    int most = 0;
    for (uint32 w = warp; w < size; w += warps) {
        const uint32 e = 32 * w + lane;
        const int a = e < edges ? amount[e] : 0;
        const uint32 bits = __ballot_sync(ALL_LANES, a != 0);
        sum += static_cast<uint64>(a) * weight(first + e);
        most = max(most, a);
        if (lane == 0) {
            word[w] = bits;
            ones[w] = __popc(bits);
        }
    }
    add_long(&sums[0], sum);
    most = -warp_min(-most);
    if (lane == 0 && most) atomicMax(&sums[1], static_cast<uint64>(most));
}

extern "C" __global__ void write(
    int* amount, uint32 edges, uint32 size, const uint32* __restrict__ word, const int64* __restrict__ starts, int width,
    void* packed) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5, lane = threadIdx.x & 31;
    for (uint32 w = warp; w < size; w += warps) {
        const uint32 bits = word[w];
        if (!(bits >> lane & 1)) continue;
        const int64 at = starts[w] + __popc(bits & ((1u << lane) - 1));
        const int a = amount[32 * w + lane];
        amount[32 * w + lane] = 0;
        if (width == 1) {
            static_cast<unsigned char*>(packed)[at] = static_cast<unsigned char>(a);
        } else {
            static_cast<int*>(packed)[at] = a;
        }
    }
}

extern "C" __global__ void count(const uint32* __restrict__ word, uint32 size, int* ones) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (uint32 w = thread; w < size; w += threads) ones[w] = __popc(word[w]);
}

extern "C" __global__ void lower(
    int* value, uint32 first, uint32 size, const uint32* __restrict__ word, const int64* __restrict__ starts, int width,
    const void* __restrict__ packed, int sign, uint64* sums) {
    const uint32 warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5, lane = threadIdx.x & 31;
    uint64 sum = 0;
    for (uint32 w = warp; w < size; w += warps) {
        const uint32 bits = word[w];
        if (bits >> lane & 1) {
            const int64 at = starts[w] + __popc(bits & ((1u << lane) - 1));
            const int a = width == 1 ? static_cast<const unsigned char*>(packed)[at] : static_cast<const int*>(packed)[at];
            value[32 * w + lane] -= sign * a;
            sum += static_cast<uint64>(a) * weight(first + 32 * w + lane);
        }
    }
    add_long(&sums[0], sum);
}

extern "C" __global__ void weigh(const int* __restrict__ amount, uint32 first, uint32 edges, uint64* sum) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint64 own = 0;
    for (uint32 e = thread; e < edges; e += threads) own += static_cast<uint64>(amount[e]) * weight(first + e);
    add_long(sum, own);
}

extern "C" __global__ void subtract(int* value, const int* __restrict__ amount, uint32 first, uint32 edges, uint64* sum) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    uint64 own = 0;
    for (uint32 e = thread; e < edges; e += threads) {
        const int a = amount[e];
        if (a == 0) continue;
        value[e] -= a;
        own += static_cast<uint64>(a) * weight(first + e);
    }
    add_long(sum, own);
}
