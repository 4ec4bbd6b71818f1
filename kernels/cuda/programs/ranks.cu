// The arithmetic of a superstep of PageRank, without contraction to fused operations: multiplications and additions are
// rounded separately.
#include "common.cuh"

// The next rank of one vertex; its share, the rank over its degree, is written to `share`.
template <class Degree>
__device__ double next_rank(double got, double damping, double restarts, Degree degree, double& share) {
    const double after = __dadd_rn(__dmul_rn(damping, got), restarts);
    share = __ddiv_rn(after, degree);
    return after;
}

// Writes the next ranks to `following`, which may be `rank`. Adds the total change, which is rounded, to `moved`.
extern "C" __global__ void next_ranks(const double* __restrict__ got, int64 count, double damping, double restarts,
                                      const uint32* __restrict__ degree, const double* rank, double* following, double* shares,
                                      double* moved) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    double change = 0;
    for (int64 v = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; v < count; v += stride) {
        const double before = rank[v], after = next_rank(got[v], damping, restarts, degree[v], shares[v]);
        following[v] = after;
        change += fabs(after - before);
    }
    for (int step = 16; step; step /= 2) change += __shfl_xor_sync(ALL_LANES, change, step);
    if ((threadIdx.x & 31) == 0) atomicAdd(moved, change);
}

// Replaces the ranks by the next ranks. Writes the change of each rank to `moved`, for a sum without rounding.
extern "C" __global__ void replace_ranks(const double* __restrict__ got, int64 count, double damping, double restarts,
                                         const double* __restrict__ degree, double* rank, double* moved, double* shares) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 v = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; v < count; v += stride) {
        const double before = rank[v], after = next_rank(got[v], damping, restarts, degree[v], shares[v]);
        rank[v] = after;
        moved[v] = fabs(after - before);
    }
}
