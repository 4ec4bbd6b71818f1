// Connected components of {edges of level >= k} for all k: three launches for each level, from the highest down, over its edges.
//
// Computes  kernels.nest, with the components in any order. The root of a set is its least vertex. Only the first
//           `room` components are stored; `found` counts all components.
// Threads   One an edge of the level. Lock-free union-find: a compare-and-swap makes a smaller root the parent of a larger one, and
//           finds halve the paths (Jayanti and Tarjan, PODC 2016, with vertex numbers in place of random priorities). `unite` does
//           two finds, the other kernels one: mostly one or two steps, about 32 bytes from random addresses each.
#include "common.cuh"

constexpr int TILE = 16;

__device__ __forceinline__ int root_of(volatile int* up, int v) {
    int parent = up[v];
    while (parent != v) {
        const int next = up[parent];
        if (next == parent) return parent;
        up[v] = next;  // v is not a root and never becomes one again, so each concurrent write leads closer to the root
        v = next;
        parent = up[v];
    }
    return v;
}

#define FOR_EACH_EDGE(e)                                                                                             \
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;                                                 \
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < edges; i += stride)                \
        if (const int e = ordered[i]; true)

// Lists the edges by descending level. `next` [levels] has the start of the edges of each level, from the highest level
// down. Edges of one level are in any order. The lanes of a warp that have equal levels reserve their places with one
// atomic.
extern "C" __global__ void by_level(const int* __restrict__ level, int64 edges, int highest, unsigned long long* next, int* ordered) {
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;
    const int lane = threadIdx.x & 31;
    for (int64 first = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x - lane; first < edges; first += stride) {
        const int64 e = first + lane;
        const uint32 there = __ballot_sync(ALL_LANES, e < edges);
        if (e >= edges) continue;
        const int k = highest - level[e];
        const uint32 same = __match_any_sync(there, k);
        const int leader = __ffs(same) - 1;
        unsigned long long at = 0;
        if (lane == leader) at = atomicAdd(&next[k], static_cast<unsigned long long>(__popc(same)));
        at = __shfl_sync(same, at, leader);
        ordered[at + __popc(same & ((1u << lane) - 1))] = static_cast<int>(e);
    }
}

// The same for few levels: a block counts TILE edges of each of its threads in shared memory, and reserves the places of
// a level with one atomic. Most edges have few levels, so the atomics of single warps would wait for each other.
extern __shared__ unsigned long long reserved[];  // [levels] the next place of each level for this block's edges

extern "C" __global__ void by_few_levels(const int* __restrict__ level, int64 edges, int highest, unsigned long long* next, int* ordered) {
    uint32* counts = reinterpret_cast<uint32*>(reserved + highest + 1);
    const int64 tile = static_cast<int64>(blockDim.x) * TILE;
    for (int64 first = blockIdx.x * tile; first < edges; first += gridDim.x * tile) {
        for (int k = threadIdx.x; k <= highest; k += blockDim.x) counts[k] = 0;
        __syncthreads();
        uint32 place[TILE];  // the level's number from the highest, and the edge's place among the block's edges of that level
        for (int i = 0; i < TILE; i++) {
            const int64 e = first + i * blockDim.x + threadIdx.x;
            if (e >= edges) continue;
            const uint32 k = highest - level[e];
            place[i] = k << 16 | atomicAdd(&counts[k], 1u);
        }
        __syncthreads();
        for (int k = threadIdx.x; k <= highest; k += blockDim.x)
            if (counts[k]) reserved[k] = atomicAdd(&next[k], static_cast<unsigned long long>(counts[k]));
        __syncthreads();
        for (int i = 0; i < TILE; i++) {
            const int64 e = first + i * blockDim.x + threadIdx.x;
            if (e < edges) ordered[reserved[place[i] >> 16] + (place[i] & 0xFFFF)] = static_cast<int>(e);
        }
        __syncthreads();
    }
}

// Unites the sets of the two ends of each edge. of_edge[e] becomes the root that got a parent by e, or -1 without one.
extern "C" __global__ void unite(const int* __restrict__ ordered, int edges, const int* __restrict__ low,
                                 const int* __restrict__ high, int* up, int* of_edge) {
    FOR_EACH_EDGE(e) {
        int a = root_of(up, low[e]), b = root_of(up, high[e]), hooked = -1;
        while (a != b) {
            const int larger = max(a, b), smaller = min(a, b);
            const int was = atomicCAS(&up[larger], larger, smaller);
            if (was == larger) {
                hooked = larger;
                break;
            }
            a = smaller;
            b = root_of(up, was);
        }
        of_edge[e] = hooked;
    }
}

// Creates a component for each root of this level's edges.
extern "C" __global__ void claim(const int* __restrict__ ordered, int edges, const int* __restrict__ low,
                                 const int* __restrict__ high, int* up, int level, int* stamp, int* top, int* of_vertex,
                                 int* found, int room, int* levels, int* least, int* parent) {
    FOR_EACH_EDGE(e) {
        const int root = root_of(up, low[e]);
        if (*static_cast<volatile int*>(&stamp[root]) == level || atomicExch(&stamp[root], level) == level) continue;
        const int x = atomicAdd(found, 1);
        if (x < room) {
            levels[x] = level;
            least[x] = root;
            parent[x] = -1;
        }
        if (top[root] >= 0) {
            if (top[root] < room) parent[top[root]] = x;
        } else {
            of_vertex[root] = x;
        }
        top[root] = x;
    }
}

// Stores the component of each edge. If a root got a parent through the edge, this component becomes the parent of the
// root's earlier component.
extern "C" __global__ void settle(const int* __restrict__ ordered, int edges, const int* __restrict__ low,
                                  const int* __restrict__ high, int* up, const int* __restrict__ top, int* of_vertex,
                                  int* of_edge, int room, int* parent) {
    FOR_EACH_EDGE(e) {
        const int x = top[root_of(up, low[e])], hooked = of_edge[e];
        if (hooked >= 0) {
            if (top[hooked] >= 0) {
                if (top[hooked] < room) parent[top[hooked]] = x;
            } else {
                of_vertex[hooked] = x;
            }
        }
        of_edge[e] = x;
    }
}
