// Rows of a subgraph in both directions, each with a hash table that tells where a neighbour stands in it.
//
// Row v is entry[begin[v] .. begin[v + 1]), pairs (neighbour, edge) in no order. A row of more than SHORT entries has
// bucket[v + 1] - bucket[v] = ceil(entries / 2) buckets of four 32-bit slots, so that a bucket holds two on average. A slot
// holds the entry's place in its row in the low bits, as many as the row's length has, and bits of the neighbour's hash
// above them: 8 bytes an entry instead of 16, and most misses cost the 16 bytes of one bucket. A bucket's slots fill in
// order; what finds four taken goes on to the next bucket.
//
// Beside each bucket stands a filter of 16 bits: one is set for each neighbour that belongs there, wherever it found room.
// A lookup that finds its bit clear is over: of those that miss, nine in ten, by a byte an entry, which caches hold eight
// times as much of.
#pragma once
#include "common.cuh"

constexpr int SHORT = 16;

__device__ __forceinline__ uint32 filter_bit(uint32 hash) {
    return hash & 15;
}

struct Row {
    int64 begin;
    int64 bucket;
    int length;
    uint32 buckets;
};

__device__ __forceinline__ Row row_of(const int64* __restrict__ begin, const int64* __restrict__ bucket, int vertex) {
    Row row;
    row.begin = begin[vertex];
    row.length = static_cast<int>(begin[vertex + 1] - row.begin);
    row.bucket = bucket[vertex];
    row.buckets = static_cast<uint32>(bucket[vertex + 1] - row.bucket);
    return row;
}

// The rows of an edge's ends, the one with fewer entries first.
struct Ends {
    Row shorter;
    Row longer;
};

__device__ __forceinline__ Ends ends_of(const int64* __restrict__ begin, const int64* __restrict__ bucket, int low, int high) {
    const Row one = row_of(begin, bucket, low), other = row_of(begin, bucket, high);
    const bool swap = one.length > other.length;
    return {swap ? other : one, swap ? one : other};
}

__device__ __forceinline__ int place_bits(int length) {
    return 32 - __clz(length);
}

// The first place in a row of `length` entries that a bucket gives for a neighbour with these bits of hash, -1 if none. All four
// slots are compared before any entry is read: or the lanes of a warp would wait for four reads in turn.
__device__ __forceinline__ int place_in_bucket(uint4 slots, uint32 print, int length) {
    const uint32 n = static_cast<uint32>(length);
    const uint32 a = slots.x ^ print, b = slots.y ^ print, c = slots.z ^ print, d = slots.w ^ print;
    return static_cast<int>(a < n ? a : b < n ? b : c < n ? c : d < n ? d : 0xFFFFFFFFu);
}

// The edge of the row that leads to `wanted`, -1 if none does. `first` is the bucket where `wanted` belongs, loaded before.
__device__ __forceinline__ int find_in_table(
    const Row& row, const int2* __restrict__ entry, const uint4* __restrict__ slot, int wanted, uint4 first) {
    const uint32 hash = scramble(wanted);
    const uint32 print = hash << place_bits(row.length);
    uint32 at = __umulhi(hash, row.buckets);
    uint4 slots = first;
    while (true) {
        const bool full = slots.w != EMPTY;
        for (int place; (place = place_in_bucket(slots, print, row.length)) >= 0;) {
            const int2 found = entry[row.begin + place];
            if (found.x == wanted) return found.y;
            // Another neighbour with the same bits: on to the next slot that has them.
            const uint32 other = print ^ static_cast<uint32>(place);
            if (slots.x == other) slots.x = EMPTY;
            else if (slots.y == other) slots.y = EMPTY;
            else if (slots.z == other) slots.z = EMPTY;
            else slots.w = EMPTY;
        }
        if (!full) return -1;
        at = at + 1 == row.buckets ? 0 : at + 1;
        slots = slot[row.bucket + at];
    }
}

__device__ __forceinline__ int find_in_short(const Row& row, const int2* __restrict__ entry, int wanted) {
    for (int j = 0; j < row.length; ++j) {
        int2 found = entry[row.begin + j];
        if (found.x == wanted) return found.y;
    }
    return -1;
}
