// Connected components of sources by union-find, and the smallest value in each.
//
// Computes  kernels.programs.connected_sources (Afforest: Sutton, Ben-Nun and Barak, IPDPS 2018). A compare-and-swap makes a smaller
//           root the parent of a larger one, so the root of a component is its smallest source, in whatever order threads run.
// link_one    One thread a row: its entry `at`.
// compress    One thread a source: lets it point to its root.
// link_rest   A warp for 32 rows: all lanes together link the other entries of each row. Entries within the largest
//             component, which was found from samples, are not linked. `skips` says that rows of this component are not
//             read at all.
#include "common.cuh"

#define FOR_EACH(i, count)                                                                      \
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;                            \
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)

__device__ __forceinline__ int now(const int* root, int v) { return *static_cast<const volatile int*>(&root[v]); }

__device__ __forceinline__ void link(int* root, int one, int other) {
    int a = now(root, one), b = now(root, other);
    while (a != b) {
        const int high = a > b ? a : b, low = a > b ? b : a;
        const int above = now(root, high);
        if (above == low || (above == high && atomicCAS(&root[high], high, low) == high)) return;
        a = now(root, now(root, high));
        b = now(root, low);
    }
}

extern "C" __global__ void link_one(const int64* __restrict__ offsets, int64 rows, const int* __restrict__ own,
                                    const int* __restrict__ source, int at, int* root) {
    FOR_EACH(row, rows) {
        const int64 q = offsets[row] + at;
        if (q < offsets[row + 1]) link(root, own[row], source[q]);
    }
}

extern "C" __global__ void compress(int* root, int64 sources) {
    FOR_EACH(v, sources) {
        int above = now(root, v);
        while (above != now(root, above)) above = now(root, above);
        root[v] = above;
    }
}

extern "C" __global__ void link_rest(const int64* __restrict__ offsets, int64 rows, const int* __restrict__ own,
                                     const int* __restrict__ source, int skipped, bool skips, int largest, int* root) {
    const int lane = threadIdx.x & 31;
    const int64 step = static_cast<int64>(gridDim.x) * blockDim.x;
    for (int64 base = static_cast<int64>(blockIdx.x) * blockDim.x + (threadIdx.x & ~31); base < rows; base += step) {
        const int64 mine = base + lane;
        bool reads = false;
        if (mine < rows && offsets[mine] + skipped < offsets[mine + 1]) {
            reads = !(skips && now(root, own[mine]) == largest);
        }
        uint32 left = __ballot_sync(ALL_LANES, reads);
        for (; left; left &= left - 1) {
            const int64 row = base + __ffs(left) - 1;
            const int at = own[row];
            const bool inside = now(root, at) == largest;
            for (int64 q = offsets[row] + skipped + lane; q < offsets[row + 1]; q += 32) {
                if (!(inside && now(root, source[q]) == largest)) link(root, at, source[q]);
            }
        }
    }
}

#if VALUE == 0
typedef int Value;
#else
typedef long long Value;
#endif

// Lowers `least` at the root of each position to the value of the position, and sets `lowered` there.
extern "C" __global__ void lower_values(const int* __restrict__ root, const int* __restrict__ position, int64 count,
                                        const Value* __restrict__ values, Value* least, bool* lowered) {
    FOR_EACH(i, count) {
        const int to = root[position[i]];
        const Value value = values[i];
        if (value < *static_cast<const volatile Value*>(&least[to]) && value < atomicMin(&least[to], value)) lowered[to] = true;
    }
}
