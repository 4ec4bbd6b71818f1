// Fixpoint iterations: the bounds of edges go down to the greatest fixpoint. The algorithm is that of kernels/cpu/fixpoint.py.
//
// Computes  Lowers the bound of each active edge once, by one or to the h-index over its triangles of the lesser of the
//           two other bounds. Flags the edges whose bounds this may lower in turn. Threads read bounds while others
//           write them: bounds only go down, so each order of the writes ends at the same bounds.
// Threads   One warp an edge. `tally` has highest + 1 counters for each warp of the launch.
// Reads     8 bytes an entry of the shorter row and a bucket (32) of the longer row, twice for edges whose bound goes down; two
//           bounds a triangle.
#include "rows.cuh"

struct Pair {
    int f, g;
};

// The triangle of entry j of the shorter row; f = -1 without a triangle.
__device__ __forceinline__ Pair triangle_at(
    const Row& shorter, const Row& longer, int j, const int2* __restrict__ entry, const Bucket* __restrict__ table) {
    if (j >= shorter.length) return {-1, -1};
    int2 mine = entry[shorter.begin + j];
    int g = longer.buckets ? find_in_table(longer, table, mine.x, home_of(mine.x, longer.buckets))
                           : find_in_short(longer, entry, mine.x);
    return g < 0 ? Pair{-1, -1} : Pair{mine.y, g};
}

__device__ __forceinline__ void flag(const int* bound, bool* again, int edge, int new_bound) {
    if (__ldcg(&bound[edge]) > new_bound) again[edge] = true;
}

extern "C" __global__ void fixpoint(
    const int* __restrict__ active, int edges, const int* __restrict__ low, const int* __restrict__ high,
    const int64* __restrict__ begin, const int* __restrict__ length, const int64* __restrict__ bucket,
    const int2* __restrict__ entry, const Bucket* __restrict__ table, int* bound, bool by_one, int* tally, int highest, bool* again) {
    const int lane = threadIdx.x & 31;
    const int warp = (blockIdx.x * blockDim.x + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    int* at_least = tally + static_cast<int64>(warp) * (highest + 1);
    for (int i = warp; i < edges; i += warps) {
        const int e = active[i];
        const Ends ends = ends_of(begin, length, bucket, low[e], high[e]);
        const Row &shorter = ends.shorter, &longer = ends.longer;
        const int old = __ldcg(&bound[e]);
        int lowered = old;
        if (by_one) {
            int supporting = 0;
            for (int j = lane; j < shorter.length; j += 32) {
                const Pair found = triangle_at(shorter, longer, j, entry, table);
                supporting += found.f >= 0 && min(__ldcg(&bound[found.f]), __ldcg(&bound[found.g])) >= old;
            }
            lowered = warp_sum(supporting) >= old ? old : old - 1;
        } else {
            for (int k = lane; k <= old; k += 32) at_least[k] = 0;
            __syncwarp();
            for (int j = lane; j < shorter.length; j += 32) {
                const Pair found = triangle_at(shorter, longer, j, entry, table);
                if (found.f < 0) continue;
                atomicAdd(&at_least[min(old, min(__ldcg(&bound[found.f]), __ldcg(&bound[found.g])))], 1);
            }
            __threadfence();
            __syncwarp();
            int reached = __ldcg(&at_least[old]);
            while (reached < lowered) reached += __ldcg(&at_least[--lowered]);
            __syncwarp();
        }
        if (lowered == old) continue;
        if (lane == 0) {
            bound[e] = lowered;
            again[e] = true;
        }
        for (int j = lane; j < shorter.length; j += 32) {
            const Pair found = triangle_at(shorter, longer, j, entry, table);
            if (found.f < 0) continue;
            flag(bound, again, found.f, lowered);
            flag(bound, again, found.g, lowered);
        }
    }
}
