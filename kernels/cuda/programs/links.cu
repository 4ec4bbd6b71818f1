// Counts the edges between the sources of rows. One warp finds the common members of each pair of ascending lists.
//
// Reads the entries of the shorter list, and looks each up in the longer one by binary search.
#include "common.cuh"

typedef unsigned long long Count;

struct List {
    int64 first;
    int64 stop;

    __device__ __forceinline__ int64 length() const { return stop - first; }
};

// The index of `key` in the list, or -1.
__device__ __forceinline__ int64 position_of(const int* __restrict__ members, const List& list, int key) {
    int64 low = list.first, high = list.stop;
    while (low < high) {
        const int64 middle = (low + high) >> 1;
        const int there = members[middle];
        if (there == key) return middle;
        if (there < key) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return -1;
}

__device__ __forceinline__ List list_of(const int64* __restrict__ offsets, int64 row) {
    return List{offsets[row], offsets[row + 1]};
}

#define FOR_EACH_PAIR(e)                                                                        \
    const int lane = threadIdx.x & 31;                                                          \
    const int64 warps = static_cast<int64>(gridDim.x) * (blockDim.x >> 5);                      \
    for (int64 e = static_cast<int64>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5); e < edges; e += warps)

// Adds times[e] to each row that contains both one[e] and other[e]. The rows of a source ascend in `row_of`.
extern "C" __global__ void count_links(const int64* __restrict__ offsets, const int* __restrict__ row_of,
                                       const int* __restrict__ one, const int* __restrict__ other,
                                       const unsigned char* __restrict__ times, int64 edges, Count* found) {
    FOR_EACH_PAIR(e) {
        const List a = list_of(offsets, one[e]), b = list_of(offsets, other[e]);
        const bool swap = a.length() > b.length();
        const List read = swap ? b : a, searched = swap ? a : b;
        for (int64 q = read.first + lane; q < read.stop; q += 32) {
            const int row = row_of[q];
            if (position_of(row_of, searched, row) >= 0) atomicAdd(&found[row], static_cast<Count>(times[e]));
        }
    }
}

// Finds each triangle w, x, y once, at the entry e of x in the list of y. Each edge of the triangle counts for the
// opposite vertex.
extern "C" __global__ void count_all_links(const int64* __restrict__ offsets, const int* __restrict__ lower,
                                           const int* __restrict__ row_of, const unsigned char* __restrict__ times,
                                           int64 edges, Count* found) {
    FOR_EACH_PAIR(e) {
        const int x = lower[e], y = row_of[e];
        const List of_x = list_of(offsets, x), of_y = list_of(offsets, y);
        const bool swap = of_x.length() > of_y.length();
        const List read = swap ? of_y : of_x, searched = swap ? of_x : of_y;
        int for_x = 0, for_y = 0;
        for (int64 q = read.first + lane; q < read.stop; q += 32) {
            const int w = lower[q];
            const int64 r = position_of(lower, searched, w);
            if (r < 0) continue;
            for_x += times[swap ? q : r];
            for_y += times[swap ? r : q];
            atomicAdd(&found[w], static_cast<Count>(times[e]));
        }
        for_x = warp_sum(for_x);
        for_y = warp_sum(for_y);
        if (lane == 0 && for_x) {
            atomicAdd(&found[x], static_cast<Count>(for_x));
            atomicAdd(&found[y], static_cast<Count>(for_y));
        }
    }
}
