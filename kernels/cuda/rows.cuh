// Rows of a subgraph in both directions, each with a hash table from its neighbours to its edges.
//
// Row v is entry[begin[v] .. begin[v] + length[v]): pairs (neighbour, edge) in no order. There may be gaps between rows, because
// trim_rows (rows.cu) removes the entries of removed edges; the hash tables keep them. A row that was built with more than 16
// entries (SHORT in kernels/gpu/adjacency.py) has bucket[v + 1] - bucket[v] buckets. A bucket has slots for four neighbours and their
// edges, 32 bytes that memory transfers together. There are four buckets for each eight entries, so a bucket has two entries on
// average. The slots of a bucket are filled in order, and an entry that finds all four in use goes to the next bucket.
//
// Each bucket has a filter of 16 bits. One bit is set for each neighbour that hashes to the bucket, even if the neighbour is
// stored in a later bucket. A lookup whose bit is clear ends without reading the bucket: this is so for nine of ten lookups that
// fail. A filter takes one byte an entry, a sixteenth of the table, so caches hold more of it.
//
// Eight consecutive vertices hash to four adjacent buckets. Vertices are numbered by degree and rows mostly ascend, so adjacent
// lanes often look up such vertices and read their filters with one request.
#pragma once
#include "common.cuh"

struct alignas(32) Bucket {
    uint4 neighbour;  // EMPTY for an empty slot
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

// The rows of the two ends of an edge: the one with fewer entries, and the other.
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

// The bucket of a row to which a neighbour hashes. The number of buckets is a multiple of four.
__device__ __forceinline__ uint32 home_of(int neighbour, uint32 buckets) {
    return __umulhi(scramble(neighbour >> 3), buckets >> 2) << 2 | (neighbour & 3);
}

// The neighbour's bit in the filter of its home bucket. Two of eight consecutive vertices share a bucket; their bits
// differ.
__device__ __forceinline__ uint32 filter_bit(int neighbour) {
    return scramble(neighbour >> 2) & 15;
}

// The edge to the neighbour `wanted` in a bucket; -1 if the bucket does not contain it.
__device__ __forceinline__ int edge_in(uint4 neighbours, uint4 edges, int wanted) {
    const uint32 key = static_cast<uint32>(wanted);
    return static_cast<int>(
        neighbours.x == key   ? edges.x
        : neighbours.y == key ? edges.y
        : neighbours.z == key ? edges.z
        : neighbours.w == key ? edges.w
                              : EMPTY);
}

// The edge of the row to the neighbour `wanted`, searched from bucket `at` on; -1 if the row does not contain it.
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
