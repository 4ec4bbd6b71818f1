// One pass over the edges that assigns their bands and flags the first edges to remove.
//
// Computes  kernels.reband; sets weak[e] for the edges of touched bands whose count is below the new threshold.
// Threads   One an edge. Reads and writes its band, count and start (24 bytes) and reads three tables over bands.
#include "common.cuh"

extern "C" __global__ void reband(
    const int* __restrict__ band, const int* __restrict__ count, const int* __restrict__ start,
    const int* __restrict__ commit, const bool* __restrict__ touched, const int* __restrict__ threshold, int edges,
    int* new_band, int* new_count, int* new_start, bool* weak) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 e = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; e < edges; e += stride) {
        int b = band[e], c = count[e], s = start[e];
        bool below = false;
        if (touched[b]) {
            if (commit[b] > 0) {
                if (c == GONE) {
                    c = s;
                } else {
                    b = commit[b];
                    s = c;
                }
            }
            below = c < threshold[b];
        }
        new_band[e] = b;
        new_count[e] = c;
        new_start[e] = s;
        weak[e] = below;
    }
}
