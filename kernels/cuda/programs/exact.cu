// The sum of float64 values without rounding, in 32-bit digits that cover all exponents (Kulisch, "Advanced arithmetic for the
// digital computer", 2002).
//
// sample_highest  The highest digit that a value of a sample starts in. Reads 8 bytes of one value in EVERY.
// add_digits      Adds to the digits. A thread keeps the sums of the WINDOW highest digits of the sample, where most values are, in
//                 registers, and adds other values to the block's digits in shared memory. Reads 8 bytes a value.
#include "common.cuh"

typedef unsigned long long Digit;  // a signed sum, modulo 2^64

constexpr int WINDOW = 3;
constexpr int EVERY = 16;  // 32 values in 32 EVERY are in the sample

struct Parts {
    int digit;  // the lowest of three; -1 for a value that is not finite
    int64 low, middle, high;
};

__device__ __forceinline__ Parts parts_of(int64 word) {
    int exponent = static_cast<int>(word >> 52 & 0x7FF);
    int64 mantissa = word & 0xFFFFFFFFFFFFFll;
    if (exponent == 0x7FF) return Parts{-1, 0, 0, 0};
    if (exponent) {
        mantissa |= 1ll << 52;
        --exponent;
    }
    const int shift = exponent & 31;
    // 32 bits shifted by at most 31 take 63 bits, so the sign bit stays 0.
    const int64 lower = (mantissa & 0xFFFFFFFFll) << shift, upper = (mantissa >> 32) << shift, sign = word < 0 ? -1 : 1;
    return Parts{exponent >> 5, sign * (lower & 0xFFFFFFFFll), sign * ((lower >> 32) + (upper & 0xFFFFFFFFll)), sign * (upper >> 32)};
}

#define FOR_EACH_VALUE(i)                                                                        \
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;                             \
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)

// `highest` is 0 before.
extern "C" __global__ void sample_highest(const int64* __restrict__ words, int64 count, int* highest) {
    int own = 0;
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x, lane = threadIdx.x & 31;
    for (int64 at = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); at * EVERY + lane < count; at += stride) {
        const int digit = parts_of(words[at * EVERY + lane]).digit;
        own = digit > own ? digit : own;
    }
    own = -warp_min(-own);
    if ((threadIdx.x & 31) == 0 && own) atomicMax(highest, own);
}

// `digits` [LIMBS + 1] are 0 before; the last one counts values that are not finite.
extern "C" __global__ void add_digits(const int64* __restrict__ words, int64 count, const int* __restrict__ highest, Digit* digits) {
    __shared__ Digit of_block[LIMBS + 1];
    for (int k = threadIdx.x; k <= LIMBS; k += blockDim.x) of_block[k] = 0;
    __syncthreads();
    const int base = *highest >= WINDOW ? *highest - WINDOW + 1 : 0;
    int64 own[WINDOW + 2] = {};
    FOR_EACH_VALUE(i) {
        const int64 word = words[i];
        if (word << 1 == 0) continue;
        const Parts parts = parts_of(word);
        const int at = parts.digit - base;
        if (parts.digit < 0) {
            atomicAdd(&of_block[LIMBS], 1ull);
        } else if (at < 0 || at >= WINDOW) {
            atomicAdd(&of_block[parts.digit], static_cast<Digit>(parts.low));
            atomicAdd(&of_block[parts.digit + 1], static_cast<Digit>(parts.middle));
            atomicAdd(&of_block[parts.digit + 2], static_cast<Digit>(parts.high));
        } else {
#pragma unroll
            for (int k = 0; k < WINDOW + 2; ++k) own[k] += k == at ? parts.low : k == at + 1 ? parts.middle : k == at + 2 ? parts.high : 0;
        }
    }
#pragma unroll
    for (int k = 0; k < WINDOW + 2; ++k)
        if (own[k]) atomicAdd(&of_block[base + k], static_cast<Digit>(own[k]));
    __syncthreads();
    for (int k = threadIdx.x; k <= LIMBS; k += blockDim.x)
        if (of_block[k]) atomicAdd(&digits[k], of_block[k]);
}
