// One pass over edges: which band they are in, and who starts to fall.
//
// Computes  kernels.reband, with falling[e] set for the edges of touched bands below their new threshold.
// Threads   one an edge; reads and writes its band, count and start (24 bytes) and reads three tables over bands.
#include "common.cuh"

extern "C" __global__ void reband(
    const int* __restrict__ band, const int* __restrict__ count, const int* __restrict__ start,
    const int* __restrict__ commit, const bool* __restrict__ touched, const int* __restrict__ threshold, int edges,
    int* new_band, int* new_count, int* new_start, bool* falling) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 e = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; e < edges; e += stride) {
        int b = band[e], c = count[e], s = start[e];
        bool falls = false;
        if (touched[b]) {
            if (commit[b] > 0) {
                if (c == GONE) {
                    c = s;
                } else {
                    b = commit[b];
                    s = c;
                }
            }
            falls = c < threshold[b];
        }
        new_band[e] = b;
        new_count[e] = c;
        new_start[e] = s;
        falling[e] = falls;
    }
}
