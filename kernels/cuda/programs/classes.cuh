// Classes of rows by length, which determine how many lanes gather a row, and the loop over all rows that the gathers
// share.
//
// Class c < 5 has the rows with at most PER_LANE * 2^c entries that are in no lower class; class 5 has longer rows with
// at most LONGEST entries. 2^c lanes gather a row of class c. Longer rows are in class 6: they are cut into parts of
// LONGEST entries, and a warp gathers each part. So the length of a row alone determines the order in which its values
// are combined.
#pragma once
#include "common.cuh"

constexpr int WIDEST = 5;             // class of rows that a whole warp gathers
constexpr int LONG_ROWS = WIDEST + 1;  // class of rows that are cut into parts
constexpr int CLASSES = LONG_ROWS + 1;
constexpr int AHEAD = 4;  // entries of a lane that are loaded before their values are combined

struct Classes {
    const int64* offsets;   // [all rows + 1]
    const int* rows;        // [selected rows], or null for all rows
    const int* order;       // [selected rows] indices in `rows`, by class
    const int64* starts;    // [CLASSES + 1] the first slot of each class in `order`
    const int* first_part;  // [long rows] the first part of each row of class LONG_ROWS
    const int* slot_of;     // [parts] the slot of each part's row, counted from the first slot of class LONG_ROWS
    const int64* parts;     // [1] number of parts

    __device__ __forceinline__ int64 row(int i) const { return rows ? rows[i] : i; }
};

__device__ __forceinline__ int64 part_count(int64 length) { return (length + LONGEST - 1) / LONGEST; }

__device__ __forceinline__ int class_of(int64 length) {
    if (length > LONGEST) return LONG_ROWS;
    int found = 0;
    while (found < WIDEST && length > static_cast<int64>(PER_LANE) << found) ++found;
    return found;
}

// Folds the entries first, first + lanes, … below stop. A lane loads AHEAD sources, then their values, and then
// combines the values in order.
template <class Fold>
__device__ __forceinline__ void fold_entries(Fold& fold, int64 first, int64 stop, int lanes) {
    for (int64 q = first; q < stop; q += AHEAD * lanes) fold.take(q, stop, lanes);
}

// For each row calls fold.start(), fold.take() for the entries, fold.merge() with other lanes, and fold.write() in one
// lane. For each part of a long row calls fold.write_part() instead. All warps of a launch share the rows. Parts come
// first, then rows from the longest class down.
template <class Fold>
__device__ __forceinline__ void fold_rows(const Classes& by, Fold& fold) {
    const int lane = threadIdx.x & 31;
    const int64 warps = static_cast<int64>(gridDim.x) * (blockDim.x >> 5), parts = *by.parts;
    for (int64 unit = static_cast<int64>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5);; unit += warps) {
        if (unit < parts) {
            const int slot = by.slot_of[unit];
            const int64 row = by.row(by.order[by.starts[LONG_ROWS] + slot]);
            const int64 begin = by.offsets[row] + (unit - by.first_part[slot]) * LONGEST, end = by.offsets[row + 1];
            fold.start();
            fold_entries(fold, begin + lane, begin + LONGEST < end ? begin + LONGEST : end, 32);
            for (int step = 16; step; step /= 2) fold.merge(step);
            if (lane == 0) fold.write_part(unit);
            continue;
        }
        int64 rest = unit - parts;
        int own = WIDEST;
        for (; own >= 0; --own) {
            const int per_warp = 32 >> own;
            const int64 units = (by.starts[own + 1] - by.starts[own] + per_warp - 1) / per_warp;
            if (rest < units) break;
            rest -= units;
        }
        if (own < 0) return;
        const int lanes = 1 << own;
        const int64 slot = by.starts[own] + rest * (32 >> own) + (lane >> own);
        const bool has = slot < by.starts[own + 1];
        const int i = has ? by.order[slot] : 0;
        const int64 row = has ? by.row(i) : 0;
        fold.start();
        if (has) fold_entries(fold, by.offsets[row] + (lane & (lanes - 1)), by.offsets[row + 1], lanes);
        for (int step = lanes / 2; step; step /= 2) fold.merge(step);
        if (has && (lane & (lanes - 1)) == 0) fold.write(i);
    }
}

// Combines the parts of each long row in order, one thread a row.
template <class Fold>
__device__ __forceinline__ void finish_rows(const Classes& by, Fold& fold) {
    const int64 first = by.starts[LONG_ROWS], stop = by.starts[LONG_ROWS + 1];
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 slot = first + static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; slot < stop; slot += stride) {
        const int i = by.order[slot], begin = by.first_part[slot - first];
        const int64 row = by.row(i), parts = part_count(by.offsets[row + 1] - by.offsets[row]);
        fold.start();
        for (int64 part = begin; part < begin + parts; ++part) fold.take_part(part);
        fold.write(i);
    }
}
