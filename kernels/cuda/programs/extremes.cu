// The smallest or largest value over each row, and its source. Of equal values the value of the first entry is kept.
//
// Reads     a source, and with ALONG a weight, of each entry, and its value.
// VALUE     0: int32, 1: int64, 2: float64. LARGEST: 1 for the largest value. ALONG: as in sums.cu, for float64.
#include "programs/classes.cuh"

#if VALUE == 0
typedef int Value;
#elif VALUE == 1
typedef long long Value;
#else
typedef double Value;
#endif

__device__ __forceinline__ bool better(Value one, Value other) {
#if LARGEST
    return one > other;
#else
    return one < other;
#endif
}

struct Extreme {
    const int* source;
    const double* weight;
    const Value* values;
    Value neutral;
    Value* out;
    int* best;
    Value* partial;
    int64* partial_entry;
    Value found;
    int64 entry;

    __device__ __forceinline__ void start() {
        found = neutral;
        entry = -1;
    }

    __device__ __forceinline__ void take(int64 q, int64 stop, int lanes) {
        int from[AHEAD];
        Value value[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) from[k] = q + k * lanes < stop ? __ldcs(&source[q + k * lanes]) : -1;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            value[k] = from[k] < 0 ? neutral : __ldg(&values[from[k]]);
#if ALONG == 1
            if (value[k] != neutral) value[k] += __ldcs(&weight[q + k * lanes]);
#elif ALONG == 2
            if (value[k] != neutral) value[k] = __dmul_rn(value[k], __ldcs(&weight[q + k * lanes]));
#endif
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (better(value[k], found)) {
                found = value[k];
                entry = q + k * lanes;
            }
        }
    }

    __device__ __forceinline__ void merge(int step) {
        const Value other = __shfl_xor_sync(ALL_LANES, found, step);
        const int64 other_entry = __shfl_xor_sync(ALL_LANES, entry, step);
        if (other_entry < 0) return;
        if (entry < 0 || better(other, found) || (other == found && other_entry < entry)) {
            found = other;
            entry = other_entry;
        }
    }

    __device__ __forceinline__ void write(int i) {
#if VALUE == 2
        out[i] = found + 0.0;  // -0.0 becomes 0.0, as on CPUs
#else
        out[i] = found;
#endif
        best[i] = entry < 0 ? -1 : source[entry];
    }

    __device__ __forceinline__ void write_part(int64 part) {
        partial[part] = found;
        partial_entry[part] = entry;
    }

    __device__ __forceinline__ void take_part(int64 part) {
        if (better(partial[part], found)) {
            found = partial[part];
            entry = partial_entry[part];
        }
    }
};

#define ARGUMENTS                                                                                                          \
    const int64 *__restrict__ offsets, const int *__restrict__ rows, const int *__restrict__ order,                        \
        const int64 *__restrict__ starts, const int *__restrict__ first_part, const int *__restrict__ slot_of,             \
        const int64 *__restrict__ parts, const int *__restrict__ source, const double *__restrict__ weight,                \
        const Value *__restrict__ values, Value neutral, Value *out, int *best, Value *partial, int64 *partial_entry

extern "C" __global__ void row_extremes(ARGUMENTS) {
    Extreme fold{source, weight, values, neutral, out, best, partial, partial_entry, neutral, -1};
    fold_rows(Classes{offsets, rows, order, starts, first_part, slot_of, parts}, fold);
}

extern "C" __global__ void finish_extremes(ARGUMENTS) {
    Extreme fold{source, weight, values, neutral, out, best, partial, partial_entry, neutral, -1};
    finish_rows(Classes{offsets, rows, order, starts, first_part, slot_of, parts}, fold);
}
