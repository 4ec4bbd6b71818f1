// Rows that are hash tables. Each entry has its neighbour and a count; no other data of an edge is stored.
//
// Row v has 4 * buckets slots from bucket `begin` on. A slot has a neighbour, which is its key, and a word (word.cuh), and four
// of them are a bucket: 32 bytes, which memory moves together. A bucket's slots fill in order; what finds four taken goes on to
// the next bucket. One bucket at least is not full, and entries stay where they are until rows are built anew (build.cu).
//
// The place of a key is its hash times the length of the row, so that all rows are in the order of the hash. When one row is
// streamed and its neighbours are looked up in another one, neighbouring lanes look at neighbouring buckets.
//
// Beside each bucket stands a filter of 16 bits: one is set for each neighbour that belongs there, wherever it found room.
//
// An edge is named by one of its two entries: a vertex, and which slot of its row (uint2).
#pragma once
#include "common.cuh"

struct alignas(16) Row {
    int64 begin;
    uint32 buckets;
    uint32 unused;
};

struct Rows {
    const Row* __restrict__ row;
    uint2* slot;  // neighbour, word
    const unsigned short* __restrict__ filter;
};

struct Found {
    uint32 at;  // the slot in its row, EMPTY for none
    int word;
};

__device__ __forceinline__ uint32 home_of(uint32 neighbour, uint32 buckets) {
    return __umulhi(neighbour * 0x9E3779B1u, buckets);  // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4)
}

// The bit of a neighbour in that bucket's filter.
__device__ __forceinline__ uint32 filter_bit(uint32 neighbour) {
    return neighbour * 0x85EBCA6Bu >> 28;
}

__device__ __forceinline__ bool may_have(const Rows& rows, const Row& row, uint32 neighbour) {
    return rows.filter[row.begin + home_of(neighbour, row.buckets)] >> filter_bit(neighbour) & 1;
}

// Reads two slots at the same time, while other threads may change words.
__device__ __forceinline__ uint4 two_slots(const uint2* slot) {
    return __ldcg(reinterpret_cast<const uint4*>(slot));
}

__device__ __forceinline__ Found found_in(uint4 first, uint4 second, uint32 bucket, uint32 wanted) {
    if (first.x == wanted) return {4 * bucket, static_cast<int>(first.y)};
    if (first.z == wanted) return {4 * bucket + 1, static_cast<int>(first.w)};
    if (second.x == wanted) return {4 * bucket + 2, static_cast<int>(second.y)};
    if (second.z == wanted) return {4 * bucket + 3, static_cast<int>(second.w)};
    return {EMPTY, 0};
}

// Finds a neighbour in a row, from bucket `at` on.
__device__ __noinline__ Found find_from(const uint2* row, uint32 buckets, uint32 wanted, uint32 at) {
    while (true) {
        const uint2* const bucket = row + 4 * static_cast<int64>(at);
        const uint4 first = two_slots(bucket), second = two_slots(bucket + 2);
        const Found found = found_in(first, second, at, wanted);
        if (found.at != EMPTY || second.z == EMPTY) return found;
        at = at + 1 == buckets ? 0 : at + 1;
    }
}

__device__ __forceinline__ Found find(const Rows& rows, const Row& row, uint32 wanted) {
    return find_from(rows.slot + 4 * row.begin, row.buckets, wanted, home_of(wanted, row.buckets));
}

__device__ __forceinline__ int* word_at(const Rows& rows, int64 slot) {
    return reinterpret_cast<int*>(&rows.slot[slot].y);
}

// The row that a bucket belongs to: `row_at` has the row of every TILE-th bucket.
constexpr int TILE = 16;  // as in compact_rows.py

__device__ __forceinline__ uint32 row_of_bucket(const Rows& rows, const uint32* __restrict__ row_at, int64 bucket) {
    uint32 low = row_at[bucket / TILE], high = row_at[bucket / TILE + 1];
    while (low < high) {
        const uint32 middle = low + (high - low + 1) / 2;
        if (rows.row[middle].begin <= bucket) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    return low;
}
