// Rows that are hash tables. Each entry has its neighbour and a count; no other data of an edge is stored.
//
// Row v has 4 * buckets slots from bucket `begin` on. A slot has a neighbour, which is its key, and a word (word.cuh).
// Four slots are a bucket of 32 bytes, which memory transfers together. The slots of a bucket are filled in order; an
// entry that finds all four in use goes to the next bucket. At least one bucket of a row is not full. Entries keep
// their slots until the rows are rebuilt (build.cu).
//
// APART     1: keys and words are in separate arrays, and the keys of the first `far` slots are in mapped host memory.
//           These are the keys of the shortest rows, since vertices are in degree order; neighbours are looked up in
//           the longer of two rows. A key is read only if its word may matter, and a word only if its key was found.
//           0: each word is beside its key.
//
// The bucket of a key is the key's hash, as a fraction, times the number of buckets. So all rows are in the order of
// the hash: when one row is streamed and its neighbours are looked up in another row, adjacent lanes read adjacent
// buckets.
//
// Each bucket has a filter of 16 bits. One bit is set for each neighbour that hashes to the bucket, even if the
// neighbour is stored in a later bucket.
//
// An edge is named by one of its two entries: a vertex, and the number of the slot in the vertex's row (uint2).
#pragma once
#include "common.cuh"
#include "compact/word.cuh"

#ifndef APART
#define APART 0
#endif
constexpr int STRIDE = APART ? 1 : 2;  // words of 4 bytes from one key to the next

struct alignas(16) Row {
    int64 begin;
    uint32 buckets;
    uint32 unused;
};

struct Rows {
    const Row* __restrict__ row;
    uint32* key;  // neighbours, EMPTY in a free slot
    int* word;    // VACANT in a free slot
    const unsigned short* __restrict__ filter;
#if APART
    uint32* far_key;
    int64 far;  // the first slot whose key is on the device; a row starts at this slot
#endif
};

// `key` has the keys from slot `far` on.
__device__ __forceinline__ Rows rows_of(
    const Row* row, uint32* key, int* word, uint32* far_key, int64 far, const unsigned short* filter) {
#if APART
    return {row, key - far, word, filter, far_key, far};
#else
    return {row, key, word, filter};
#endif
}

// The array that contains the key of a slot, and all keys of the slot's row.
__device__ __forceinline__ const uint32* keys_with(const Rows& rows, int64 slot) {
#if APART
    return slot < rows.far ? rows.far_key : rows.key;
#else
    return rows.key;
#endif
}

struct Found {
    uint32 at;  // the slot in its row, EMPTY for none
    int word;
};

__device__ __forceinline__ uint32 home_of(uint32 neighbour, uint32 buckets) {
    return __umulhi(neighbour * 0x9E3779B1u, buckets);  // 2^32 / golden ratio (Knuth, TAOCP 3, 6.4)
}

// The bit of a neighbour in the filter of its home bucket.
__device__ __forceinline__ uint32 filter_bit(uint32 neighbour) {
    return neighbour * 0x85EBCA6Bu >> 28;
}

__device__ __forceinline__ bool may_have(const Rows& rows, const Row& row, uint32 neighbour) {
    return rows.filter[row.begin + home_of(neighbour, row.buckets)] >> filter_bit(neighbour) & 1;
}

__device__ __forceinline__ uint32 key_at(const Rows& rows, int64 slot) {
    return __ldcg(&keys_with(rows, slot)[STRIDE * slot]);
}

__device__ __forceinline__ int* word_at(const Rows& rows, int64 slot) {
    return &rows.word[STRIDE * slot];
}

// Reads the neighbours and words of the slots start, start + 32, … of a row of `slots` slots that begins at slot
// `from`. The neighbour is EMPTY if there is no entry, and may be EMPTY if its edge left before this round.
template <int ENTRIES>
__device__ __forceinline__ void read_slots(
    const Rows& rows, int64 from, uint32 start, uint32 slots, int leaves, uint2 (&entry)[ENTRIES]) {
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const uint32 at = start + 32 * k;
#if APART
        entry[k] = make_uint2(EMPTY, at < slots ? __ldcg(word_at(rows, from + at)) : VACANT);
#else
        entry[k] = at < slots ? __ldcg(reinterpret_cast<const uint2*>(rows.key) + from + at) : make_uint2(EMPTY, 0);
#endif
    }
#if APART
#pragma unroll
    for (int k = 0; k < ENTRIES; ++k) {
        const int word = static_cast<int>(entry[k].y);
        if (stands(word) || word == leaves) entry[k].x = key_at(rows, from + start + 32 * k);
    }
#endif
}

// The part of a bucket that one lookup reads at once. Other threads may change words at the same time.
struct Bucket {
#if APART
    uint4 key;
#else
    uint4 first, second;
#endif
};

// `key` is the first key of the row.
__device__ __forceinline__ Bucket read_bucket(const uint32* key, uint32 bucket) {
    const uint4* const here = reinterpret_cast<const uint4*>(key + 4 * STRIDE * static_cast<int64>(bucket));
#if APART
    return {__ldcg(here)};
#else
    return {__ldcg(here), __ldcg(here + 1)};
#endif
}

__device__ __forceinline__ bool is_full(const Bucket& read) {
#if APART
    return read.key.w != EMPTY;
#else
    return read.second.z != EMPTY;
#endif
}

// `word` is the first word of the row.
__device__ __forceinline__ Found found_in(const Bucket& read, const int* word, uint32 bucket, uint32 wanted) {
#if APART
    const uint4& key = read.key;
    const int slot = key.x == wanted ? 0 : key.y == wanted ? 1 : key.z == wanted ? 2 : key.w == wanted ? 3 : -1;
    if (slot < 0) return {EMPTY, 0};
    return {4 * bucket + slot, __ldcg(&word[4 * static_cast<int64>(bucket) + slot])};
#else
    if (read.first.x == wanted) return {4 * bucket, static_cast<int>(read.first.y)};
    if (read.first.z == wanted) return {4 * bucket + 1, static_cast<int>(read.first.w)};
    if (read.second.x == wanted) return {4 * bucket + 2, static_cast<int>(read.second.y)};
    if (read.second.z == wanted) return {4 * bucket + 3, static_cast<int>(read.second.w)};
    return {EMPTY, 0};
#endif
}

__device__ __forceinline__ const uint32* keys_of(const Rows& rows, const Row& row) {
    return keys_with(rows, 4 * row.begin) + 4 * STRIDE * row.begin;
}

__device__ __forceinline__ const int* words_of(const Rows& rows, const Row& row) {
    return rows.word + 4 * STRIDE * row.begin;
}

// Finds a neighbour in a row, from bucket `at` on.
__device__ __noinline__ Found find_from(const uint32* key, const int* word, uint32 buckets, uint32 wanted, uint32 at) {
    while (true) {
        const Bucket read = read_bucket(key, at);
        const Found found = found_in(read, word, at, wanted);
        if (found.at != EMPTY || !is_full(read)) return found;
        at = at + 1 == buckets ? 0 : at + 1;
    }
}

__device__ __forceinline__ Found find(const Rows& rows, const Row& row, uint32 wanted) {
    return find_from(keys_of(rows, row), words_of(rows, row), row.buckets, wanted, home_of(wanted, row.buckets));
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
