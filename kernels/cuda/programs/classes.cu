// Sorts rows by length class: `count_classes` counts the rows of each class, `place_rows` writes them in order. Each
// reads two offsets a row.
//
// Within a class, rows of a block follow each other, so that neighbouring rows mostly stay neighbours.
#include "programs/classes.cuh"

#define FOR_EACH_ROW(i)                                                                                                  \
    const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;                                                       \
    for (int64 base = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); base < count; base += step)      \
        if (const int64 i = base + (threadIdx.x & 31); true)

__device__ __forceinline__ int64 length_of(const int64* offsets, const int* rows, int64 i) {
    const int64 row = rows ? rows[i] : i;
    return offsets[row + 1] - offsets[row];
}

extern "C" __global__ void count_classes(const int64* __restrict__ offsets, const int* __restrict__ rows, int64 count,
                                         unsigned long long* sizes) {
    FOR_EACH_ROW(i) {
        const int own = i < count ? class_of(length_of(offsets, rows, i)) : -1;
        for (int c = 0; c < CLASSES; ++c) {
            const uint32 same = __ballot_sync(ALL_LANES, own == c);
            if (same && (threadIdx.x & 31) == 0) atomicAdd(&sizes[c], static_cast<unsigned long long>(__popc(same)));
        }
    }
}

// `used` [CLASSES] and `parts` are 0 at the start.
extern "C" __global__ void place_rows(const int64* __restrict__ offsets, const int* __restrict__ rows, int64 count,
                                      const int64* __restrict__ starts, unsigned long long* used, int* order, int* first_part,
                                      int* slot_of, unsigned long long* parts) {
    const int lane = threadIdx.x & 31;
    FOR_EACH_ROW(i) {
        const int64 length = i < count ? length_of(offsets, rows, i) : 0;
        const int own = i < count ? class_of(length) : -1;
        for (int c = 0; c < CLASSES; ++c) {
            const uint32 same = __ballot_sync(ALL_LANES, own == c);
            if (!same) continue;
            unsigned long long slot = 0;
            if (lane == 0) slot = atomicAdd(&used[c], static_cast<unsigned long long>(__popc(same)));
            slot = __shfl_sync(ALL_LANES, slot, 0) + __popc(same & ((1u << lane) - 1));
            if (own != c) continue;
            order[starts[c] + slot] = static_cast<int>(i);
            if (c < LONG_ROWS || !first_part) continue;
            const int64 own_parts = part_count(length);
            const unsigned long long first = atomicAdd(parts, static_cast<unsigned long long>(own_parts));
            first_part[slot] = static_cast<int>(first);
            for (int64 p = 0; p < own_parts; ++p) slot_of[first + p] = static_cast<int>(slot);
        }
    }
}
