// Rows of a subgraph in both directions, each with a hash table from its neighbours to its edges.
//
// Row v is entry[begin[v] .. begin[v] + length[v]), pairs (neighbour, edge) in no order. Rows lie apart: entries of fallen edges
// may leave them (trim_rows in rows.cu), while they stay in the tables. A row that started with more than SHORT entries has
// bucket[v + 1] - bucket[v] buckets of four neighbours and their edges, 32 bytes that memory moves together: for each eight
// entries four buckets, so that a bucket holds two on average. A bucket's places fill in order; what finds four taken goes on to
// the next bucket.
//
// Beside each bucket stands a filter of 16 bits: one is set for each neighbour that belongs there, wherever it found room.
// A lookup that finds its bit clear is over: of those that miss, nine in ten, by a byte an entry, which caches hold sixteen
// times as much of.
//
// Eight vertices that follow each other belong to four buckets side by side. Vertices are in degree order and rows mostly
// ascend, so neighbouring lanes look for such: their filters then come with one request.
#pragma once
#include "common.cuh"

constexpr int SHORT = 16;

struct alignas(32) Bucket {
    uint4 neighbour;  // EMPTY where there is none
    uint4 edge;
};

struct Row {
    int64 begin;
    int64 bucket;
    int length;
    uint32 buckets;
};

__device__ __forceinline__ Row row_of(
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket, int vertex) {
    Row row;
    row.begin = begin[vertex];
    row.length = length[vertex];
    row.bucket = bucket[vertex];
    row.buckets = static_cast<uint32>(bucket[vertex + 1] - row.bucket);
    return row;
}

// The rows of an edge's ends, the one with fewer entries first.
struct Ends {
    Row shorter;
    Row longer;
};

__device__ __forceinline__ Ends ends_of(
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket, int low, int high) {
    const Row one = row_of(begin, length, bucket, low), other = row_of(begin, length, bucket, high);
    const bool swap = one.length > other.length;
    return {swap ? other : one, swap ? one : other};
}

// The bucket of a row where a neighbour belongs; a row has a multiple of four.
__device__ __forceinline__ uint32 home_of(int neighbour, uint32 buckets) {
    return __umulhi(scramble(neighbour >> 3), buckets >> 2) << 2 | (neighbour & 3);
}

// Its bit in that bucket's filter: the two that belong to one bucket of the same eight have different ones.
__device__ __forceinline__ uint32 filter_bit(int neighbour) {
    return scramble(neighbour >> 2) & 15;
}

// The edge that a bucket gives for a neighbour, -1 if none.
__device__ __forceinline__ int edge_in(uint4 neighbours, uint4 edges, int wanted) {
    const uint32 key = static_cast<uint32>(wanted);
    return static_cast<int>(
        neighbours.x == key   ? edges.x
        : neighbours.y == key ? edges.y
        : neighbours.z == key ? edges.z
        : neighbours.w == key ? edges.w
                              : EMPTY);
}

// The edge of the row that leads to `wanted`, -1 if none does, from bucket `at` on.
__device__ __forceinline__ int find_in_table(const Row& row, const Bucket* __restrict__ table, int wanted, uint32 at) {
    while (true) {
        const Bucket& here = table[row.bucket + at];
        const uint4 neighbours = here.neighbour;
        const int edge = edge_in(neighbours, here.edge, wanted);
        if (edge >= 0 || neighbours.w == EMPTY) return edge;
        at = at + 1 == row.buckets ? 0 : at + 1;
    }
}

__device__ __forceinline__ int find_in_short(const Row& row, const int2* __restrict__ entry, int wanted) {
    for (int j = 0; j < row.length; ++j) {
        int2 found = entry[row.begin + j];
        if (found.x == wanted) return found.y;
    }
    return -1;
}
