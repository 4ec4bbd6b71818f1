// Rows cut by the third vertex: a shard stores, for each vertex, its neighbours in one class. See docs/shards.md.
//
// Classes  Vertices are numbered by ascending degree and assigned to classes from the highest down, back and forth, as in
//          kernels/cpu/shards/cut.py. Each run of `shards` vertices has one vertex of each class, so the number of a vertex within
//          its class is the number of its run.
// Rows     Entries are pairs (number of the neighbour in its class, half of the edge), in no order. `rows` has 16 bytes a vertex:
//          begin, length, buckets. A row that was built with more than SHORT_PART entries begins at a multiple of eight and has a
//          hash table as in rows.cuh, with four buckets for each eight entries; the table begins at bucket begin / 2. Short rows
//          follow after all others.
#pragma once
#include "rows.cuh"

constexpr uint32 SHORT_PART = SHORT_PART_ENTRIES;

struct Cut {
    uint32 vertices;
    uint32 shards;
    uint32 own;
};

__device__ __forceinline__ uint32 class_at(const Cut& cut, uint32 run, uint32 step) {
    return run & 1 ? cut.shards - 1 - step : step;
}

__device__ __forceinline__ uint32 class_of(const Cut& cut, uint32 vertex) {
    const uint32 rank = cut.vertices - 1 - vertex, run = rank / cut.shards;
    return class_at(cut, run, rank - run * cut.shards);
}

// The number of a vertex within its class.
__device__ __forceinline__ uint32 number_of(const Cut& cut, uint32 vertex) {
    return (cut.vertices - 1 - vertex) / cut.shards;
}

// The least number of a vertex <= `vertex` in the own class. Higher vertices have smaller numbers.
__device__ __forceinline__ uint32 first_below(const Cut& cut, uint32 vertex) {
    const uint32 rank = cut.vertices - 1 - vertex, run = rank / cut.shards;
    return run + (class_at(cut, run, cut.own) < rank - run * cut.shards);
}

struct Rows {
    const uint4* __restrict__ row;
    const int2* __restrict__ entry;
    const Bucket* __restrict__ table;
    const unsigned short* __restrict__ filter;
};

__device__ __forceinline__ Row unpack(uint4 row) {
    return {row.x, row.x >> 1, static_cast<int>(row.y), row.z};
}

// The half of the edge to a neighbour in a row; -1 if the row does not contain it.
__device__ __forceinline__ int find(const Rows& rows, const Row& row, uint32 number) {
    const int wanted = static_cast<int>(number);
    if (row.buckets) return find_in_table(row, rows.table, wanted, home_of(wanted, row.buckets));
    return find_in_short(row, rows.entry, wanted);
}

// The half of an edge with an end in the own class; -1 if the shard does not store the edge.
__device__ __forceinline__ int half_of(const Rows& rows, const Cut& cut, uint32 low, uint32 high) {
    const bool to_high = class_of(cut, high) == cut.own;
    return find(rows, unpack(rows.row[to_high ? low : high]), number_of(cut, to_high ? high : low));
}
