// A 64-bit hash of a word: the finalizer of splitmix64, a permutation. kernels/cpu/arrays/intrinsics.py computes the same.
#pragma once

typedef unsigned long long uint64;

__device__ __forceinline__ uint64 mixed(uint64 word) {
    word = (word ^ (word >> 30)) * 0xBF58476D1CE4E5B9ull;
    word = (word ^ (word >> 27)) * 0x94D049BB133111EBull;
    return word ^ (word >> 31);
}
