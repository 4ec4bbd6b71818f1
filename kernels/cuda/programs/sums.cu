// The sum of the values over each row, in an order that the row's length determines.
//
// Reads     for each entry a source, with ALONG a weight, and a value: 12 or 20 bytes. Sources and weights are
//           streaming loads, which the L2 cache may drop first.
// ALONG     0: no weights, 1: add the weight, 2: multiply with it.
#include "programs/classes.cuh"

struct Sum {
    const int* source;
    const double* weight;
    const double* values;
    double* out;
    double* partial;
    double total;

    __device__ __forceinline__ void start() { total = 0; }

    __device__ __forceinline__ void take(int64 q, int64 stop, int lanes) {
        int from[AHEAD];
        double value[AHEAD];
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) from[k] = q + k * lanes < stop ? __ldcs(&source[q + k * lanes]) : -1;
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            value[k] = from[k] < 0 ? 0.0 : __ldg(&values[from[k]]);
#if ALONG == 1
            if (from[k] >= 0) value[k] += __ldcs(&weight[q + k * lanes]);
#elif ALONG == 2
            if (from[k] >= 0) value[k] = __dmul_rn(value[k], __ldcs(&weight[q + k * lanes]));
#endif
        }
#pragma unroll
        for (int k = 0; k < AHEAD; ++k) {
            if (from[k] >= 0) total += value[k];
        }
    }

    __device__ __forceinline__ void merge(int step) { total += __shfl_xor_sync(ALL_LANES, total, step); }
    __device__ __forceinline__ void write(int i) { out[i] = total; }
    __device__ __forceinline__ void write_part(int64 part) { partial[part] = total; }
    __device__ __forceinline__ void take_part(int64 part) { total += partial[part]; }
};

#define ARGUMENTS                                                                                                          \
    const int64 *__restrict__ offsets, const int *__restrict__ rows, const int *__restrict__ order,                        \
        const int64 *__restrict__ starts, const int *__restrict__ first_part, const int *__restrict__ slot_of,             \
        const int64 *__restrict__ parts, const int *__restrict__ source, const double *__restrict__ weight,                \
        const double *__restrict__ values, double *out, double *partial

extern "C" __global__ void row_sums(ARGUMENTS) {
    Sum fold{source, weight, values, out, partial, 0};
    fold_rows(Classes{offsets, rows, order, starts, first_part, slot_of, parts}, fold);
}

extern "C" __global__ void finish_sums(ARGUMENTS) {
    Sum fold{source, weight, values, out, partial, 0};
    finish_rows(Classes{offsets, rows, order, starts, first_part, slot_of, parts}, fold);
}
