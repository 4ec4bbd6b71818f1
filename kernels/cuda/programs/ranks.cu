// The arithmetic of a superstep of PageRank, without contractions: its bits are those of separate multiplications and additions.
//
// `following` gets the next ranks, and may be `rank`; `shares` these over the degrees; `moved` the total change, which is rounded.
#include "common.cuh"

extern "C" __global__ void next_ranks(const double* __restrict__ got, int64 count, double damping, double restarts,
                                      const uint32* __restrict__ degree, const double* rank, double* following, double* shares,
                                      double* moved) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    double change = 0;
    for (int64 v = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; v < count; v += stride) {
        const double before = rank[v], after = __dadd_rn(__dmul_rn(damping, got[v]), restarts);
        following[v] = after;
        shares[v] = __ddiv_rn(after, degree[v]);
        change += fabs(after - before);
    }
    for (int step = 16; step; step /= 2) change += __shfl_xor_sync(ALL_LANES, change, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(moved, change);
}
