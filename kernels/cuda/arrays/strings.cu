// Strings by their bytes: which are equal, how they begin, sort keys, and copies.
//
// Computes  kernels.gpu.arrays.strings. String i is content[offsets[i]] … content[offsets[i + 1] - 1].
// Threads   stride over the strings, a thread each; in copy_strings a warp each.
#include "common.cuh"
#include "mix.cuh"

typedef unsigned char byte;

constexpr uint64 NONE = ~0ull;

__device__ __forceinline__ uint64 hash_of(const byte* __restrict__ text, int64 length, uint64 seed) {
    uint64 found = mixed(static_cast<uint64>(length) ^ seed);
    for (int64 at = 0; at < length; at += 8) {
        uint64 word = 0;
        for (int64 i = at; i < min(at + 8, length); i++) word = word << 8 | text[i];
        found = mixed(found ^ word);
    }
    return found;
}

__device__ __forceinline__ bool are_equal(const int64* __restrict__ offsets, const byte* __restrict__ content, uint32 one, uint32 other) {
    const int64 first = offsets[one], second = offsets[other], length = offsets[one + 1] - first;
    if (offsets[other + 1] - second != length) return false;
    for (int64 i = 0; i < length; i++)
        if (content[first + i] != content[second + i]) return false;
    return true;
}

// same[i] becomes a string that equals string i, one for all that are equal. A slot of the hash table has the upper half
// of a hash and the number of a string. `slots` are NONE at the start, a power of two, more than the strings.
extern "C" __global__ void find_same(
    const int64* __restrict__ offsets, const byte* __restrict__ content, uint32 count, uint64* slots, uint64 mask, uint64 seed,
    int* __restrict__ same
) {
    for (uint32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const uint64 hash = hash_of(content + offsets[i], offsets[i + 1] - offsets[i], seed);
        const uint64 own = (hash & 0xFFFFFFFF00000000ull) | i;
        for (uint64 slot = hash & mask;; slot = (slot + 1) & mask) {
            uint64 there = *static_cast<volatile uint64*>(slots + slot);
            if (there == NONE) there = atomicCAS(slots + slot, NONE, own);
            if (there == NONE) there = own;
            const uint32 other = static_cast<uint32>(there);
            if (there == own || ((there ^ own) >> 32 == 0 && are_equal(offsets, content, other, i))) {
                same[i] = static_cast<int>(other);
                break;
            }
        }
    }
}

// lengths[0] becomes the length of the common prefix of the strings `which`, at most its value before; lengths[1] the
// length of the longest, at least its value before.
extern "C" __global__ void measure(
    const int64* __restrict__ offsets, const byte* __restrict__ content, const int* __restrict__ which, uint32 count, unsigned long long* lengths
) {
    const byte* head = content + offsets[which[0]];
    int64 common = static_cast<int64>(lengths[0]), longest = 0;
    for (uint32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const byte* text = content + offsets[which[i]];
        const int64 length = offsets[which[i] + 1] - offsets[which[i]];
        longest = max(longest, length);
        common = min(common, length);
        int64 at = 0;
        while (at < common && text[at] == head[at]) at++;
        common = at;
    }
    for (int step = 16; step; step /= 2) {
        common = min(common, static_cast<int64>(__shfl_xor_sync(ALL_LANES, common, step)));
        longest = max(longest, static_cast<int64>(__shfl_xor_sync(ALL_LANES, longest, step)));
    }
    if (threadIdx.x & 31) return;
    atomicMin(lengths, static_cast<unsigned long long>(common));
    atomicMax(lengths + 1, static_cast<unsigned long long>(longest));
}

// The key of each string `which`: the DIGIT bytes from `depth` on, then their number, so that of two strings that differ
// only in zeros at their ends the shorter is first. The key is 0 behind the end of a string.
extern "C" __global__ void read_keys(
    const int64* __restrict__ offsets, const byte* __restrict__ content, const int* __restrict__ which, uint32 count, int64 depth,
    uint64* __restrict__ keys
) {
    for (uint32 i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += gridDim.x * blockDim.x) {
        const int64 start = offsets[which[i]] + depth, left = max(offsets[which[i] + 1] - start, 0ll);
        const int here = static_cast<int>(min(left, static_cast<int64>(DIGIT)));
        uint64 key = 0;
        for (int at = 0; at < DIGIT; at++) key = key << 8 | (at < here ? content[start + at] : 0);
        keys[i] = key << 8 | static_cast<uint64>(here);
    }
}

// Copy the strings `which` to `target`, one after the other. `starts` [count] is where each begins there.
extern "C" __global__ void copy_strings(
    const int64* __restrict__ offsets, const byte* __restrict__ content, const int* __restrict__ which, uint32 count,
    const int64* __restrict__ starts, byte* __restrict__ target
) {
    const uint32 lane = threadIdx.x & 31, warps = gridDim.x * blockDim.x / 32;
    for (uint32 i = (blockIdx.x * blockDim.x + threadIdx.x) / 32; i < count; i += warps) {
        const int64 start = offsets[which[i]], length = offsets[which[i] + 1] - start;
        for (int64 at = lane; at < length; at += 32) target[starts[i] + at] = content[start + at];
    }
}
