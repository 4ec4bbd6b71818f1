// Rows of a subgraph in both directions, each with a hash table that tells where a neighbour stands in it.
//
// Row v is entry[begin[v] .. begin[v + 1]), pairs (neighbour, edge) in no order. A row of more than SHORT entries has
// bucket[v + 1] - bucket[v] = ceil(entries / 2) buckets of four 32-bit slots, so that a bucket holds two on average. A slot
// holds the entry's place in its row in the low bits, as many as the row's length has, and bits of the neighbour's hash
// above them: 8 bytes an entry instead of 16, and most misses cost the 16 bytes of one bucket. A bucket's slots fill in
// order; what finds four taken goes on to the next bucket.
#pragma once
#include "common.cuh"

constexpr int SHORT = 16;

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

__device__ __forceinline__ int place_bits(int length) {
    return 32 - __clz(length);
}

// The edge to `wanted` if the slot points there, else -1.
__device__ __forceinline__ int edge_in_slot(
    uint32 slot, uint32 print, const Row& row, const int2* __restrict__ entry, int wanted) {
    uint32 place = slot ^ print;
    if (place >= static_cast<uint32>(row.length)) return -1;
    int2 found = entry[row.begin + place];
    return found.x == wanted ? found.y : -1;
}

// The edge of the row that leads to `wanted`, -1 if none does. `first` is the bucket where `wanted` belongs, loaded before.
__device__ __forceinline__ int find_in_table(
    const Row& row, const int2* __restrict__ entry, const uint4* __restrict__ slot, int wanted, uint4 first) {
    uint32 hash = scramble(wanted);
    uint32 print = hash << place_bits(row.length);
    uint32 at = __umulhi(hash, row.buckets);
    uint4 slots = first;
    while (true) {
        int edge = edge_in_slot(slots.x, print, row, entry, wanted);
        if (edge < 0) edge = edge_in_slot(slots.y, print, row, entry, wanted);
        if (edge < 0) edge = edge_in_slot(slots.z, print, row, entry, wanted);
        if (edge < 0) edge = edge_in_slot(slots.w, print, row, entry, wanted);
        if (edge >= 0 || slots.w == EMPTY) return edge;
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
