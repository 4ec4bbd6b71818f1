// The most frequent value of each row, and the h-index of its values.
//
// A row of up to 32 entries has a lane an entry, with all values in registers. A longer row has a block, which counts
// in a table in shared memory if the table fits, else in its own part of `scratch`. Reads a source and a value of each
// entry.
// VALUE     0: int32, 1: int64.
#include "programs/classes.cuh"

#if VALUE == 0
typedef int Value;
#else
typedef long long Value;
#endif
typedef unsigned long long Key;

constexpr int SLOTS = 2048;    // of a hash table in shared memory, at most half full
constexpr int BUCKETS = 4096;  // of counts in shared memory
constexpr Key FREE = 1ull << 63;

struct Frequent {
    int count;
    long long value;

    __device__ __forceinline__ void merge(int other_count, long long other) {
        if (other_count > count || (other_count == count && other < value)) {
            count = other_count;
            value = other;
        }
    }
};

#define ARGUMENTS                                                                                                        \
    const int64 *__restrict__ offsets, const int *__restrict__ rows, const int *__restrict__ order,                      \
        const int64 *__restrict__ starts, const int *__restrict__ source, const Value *__restrict__ values

// A warp has 32 >> own rows of class `own` at once; `at` is the row of a lane.
#define FOR_EACH_SHORT_ROW(own, at)                                                                                      \
    const int lane = threadIdx.x & 31;                                                                                   \
    const int64 warps = static_cast<int64>(gridDim.x) * (blockDim.x >> 5);                                               \
    const int64 warp = static_cast<int64>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5);                          \
    for (int own = 0; own <= WIDEST; ++own)                                                                              \
        for (int64 base = starts[own] + warp * (32 >> own); base < starts[own + 1]; base += warps * (32 >> own))         \
            if (const Short at = short_row(offsets, rows, order, starts, base, own, lane); true)

struct Short {
    int i;
    int64 first;
    int length;
};

__device__ __forceinline__ Short short_row(const int64* offsets, const int* rows, const int* order, const int64* starts, int64 base,
                                           int own, int lane) {
    const int64 slot = base + (lane >> own);
    if (slot >= starts[own + 1]) return Short{-1, 0, 0};
    const int i = order[slot];
    const int64 row = rows ? rows[i] : i;
    return Short{i, offsets[row], static_cast<int>(offsets[row + 1] - offsets[row])};
}

extern "C" __global__ void short_modes(ARGUMENTS, Value none, Value* out) {
    FOR_EACH_SHORT_ROW(own, at) {
        const int lanes = 1 << own, sub = lane & (lanes - 1), leader = lane - sub;
        const bool has = sub < at.length;
        Frequent best{0, none};
        if (has) {
            const uint32 members = (at.length == 32 ? ALL_LANES : (1u << at.length) - 1) << leader;
            best.value = values[source[at.first + sub]];
            best.count = __popc(__match_any_sync(members, best.value));
        }
        for (int step = lanes / 2; step; step /= 2) {
            const int count = __shfl_xor_sync(ALL_LANES, best.count, step);
            const long long value = __shfl_xor_sync(ALL_LANES, best.value, step);
            if (count) best.merge(count, value);
        }
        if (at.i >= 0 && sub == 0) out[at.i] = static_cast<Value>(best.value);
    }
}

extern "C" __global__ void short_h_indices(ARGUMENTS, Value* out) {
    FOR_EACH_SHORT_ROW(own, at) {
        const int lanes = 1 << own, sub = lane & (lanes - 1), leader = lane - sub;
        const uint32 members = (lanes == 32 ? ALL_LANES : (1u << lanes) - 1) << leader;
        const long long value = sub < at.length ? static_cast<long long>(values[source[at.first + sub]]) : -1;
        int low = 0, high = at.length;  // the h-index is between them
        for (int turn = 0; turn <= own; ++turn) {
            const int middle = (low + high + 1) >> 1;
            const int reach = __popc(__ballot_sync(ALL_LANES, value >= middle) & members);
            if (low < high && reach >= middle) {
                low = middle;
            } else if (low < high) {
                high = middle - 1;
            }
        }
        if (at.i >= 0 && sub == 0) out[at.i] = low;
    }
}

// The best of all threads of a block; thread 0 gets it.
__device__ __forceinline__ Frequent block_best(Frequent best) {
    __shared__ int counts[32];
    __shared__ long long found[32];
    for (int step = 16; step; step /= 2) {
        const int count = __shfl_xor_sync(ALL_LANES, best.count, step);
        best.merge(count, __shfl_xor_sync(ALL_LANES, best.value, step));
    }
    if ((threadIdx.x & 31) == 0) {
        counts[threadIdx.x >> 5] = best.count;
        found[threadIdx.x >> 5] = best.value;
    }
    __syncthreads();
    if (threadIdx.x == 0)
        for (int warp = 1; warp < blockDim.x >> 5; ++warp) best.merge(counts[warp], found[warp]);
    __syncthreads();
    return best;
}

__device__ __forceinline__ void count_value(Key* keys, int* counts, uint32 mask, Key key) {
    uint32 slot = static_cast<uint32>(key * 0x9E3779B97F4A7C15ull >> 32) & mask;
    while (true) {
        Key there = *static_cast<volatile Key*>(&keys[slot]);
        if (there == FREE) there = atomicCAS(&keys[slot], FREE, key);
        if (there == FREE || there == key) break;
        slot = (slot + 1) & mask;
    }
    atomicAdd(&counts[slot], 1);
}

// `scratch` has `slots` keys and as many counts for each block. The smallest 64-bit integer marks free slots and is counted apart.
extern "C" __global__ void long_modes(ARGUMENTS, Key* scratch, int* scratch_counts, int64 slots, Value* out) {
    __shared__ Key shared_keys[SLOTS];
    __shared__ int shared_counts[SLOTS];
    __shared__ int least;
    for (int64 at = starts[LONG_ROWS] + blockIdx.x; at < starts[LONG_ROWS + 1]; at += gridDim.x) {
        const int i = order[at];
        const int64 row = rows ? rows[i] : i, first = offsets[row], length = offsets[row + 1] - first;
        uint32 capacity = SLOTS;
        while (capacity < 2 * length) capacity *= 2;
        const bool fits = capacity == SLOTS;
        Key* const keys = fits ? shared_keys : scratch + blockIdx.x * slots;
        int* const counts = fits ? shared_counts : scratch_counts + blockIdx.x * slots;
        for (uint32 slot = threadIdx.x; slot < capacity; slot += blockDim.x) {
            keys[slot] = FREE;
            counts[slot] = 0;
        }
        if (threadIdx.x == 0) least = 0;
        __syncthreads();
        for (int64 q = threadIdx.x; q < length; q += blockDim.x) {
            const Key key = static_cast<Key>(static_cast<long long>(values[source[first + q]]));
            if (key == FREE) {
                atomicAdd(&least, 1);
            } else {
                count_value(keys, counts, capacity - 1, key);
            }
        }
        __syncthreads();
        Frequent best{threadIdx.x == 0 ? least : 0, static_cast<long long>(FREE)};
        for (uint32 slot = threadIdx.x; slot < capacity; slot += blockDim.x)
            if (counts[slot]) best.merge(counts[slot], static_cast<long long>(keys[slot]));
        best = block_best(best);
        if (threadIdx.x == 0) out[i] = static_cast<Value>(best.value);
    }
}

// `scratch` has `buckets` counts for each block: one more than the entries of the longest row.
extern "C" __global__ void long_h_indices(ARGUMENTS, int* scratch, int64 buckets, Value* out) {
    __shared__ int shared_counts[BUCKETS];
    __shared__ int of_thread[1024];
    for (int64 at = starts[LONG_ROWS] + blockIdx.x; at < starts[LONG_ROWS + 1]; at += gridDim.x) {
        const int i = order[at];
        const int64 row = rows ? rows[i] : i, first = offsets[row];
        const int length = static_cast<int>(offsets[row + 1] - first);
        int* const counts = length < BUCKETS ? shared_counts : scratch + blockIdx.x * buckets;
        for (int k = threadIdx.x; k <= length; k += blockDim.x) counts[k] = 0;
        __syncthreads();
        for (int q = threadIdx.x; q < length; q += blockDim.x) {
            const long long value = values[source[first + q]];
            atomicAdd(&counts[value < 0 ? 0 : value > length ? length : value], 1);
        }
        __syncthreads();
        const int run = (length + blockDim.x) / blockDim.x;  // buckets of a thread
        int sum = 0;
        for (int64 k = static_cast<int64>(threadIdx.x) * run; k <= length && k < (threadIdx.x + 1ll) * run; ++k) sum += counts[k];
        of_thread[threadIdx.x] = sum;
        __syncthreads();
        if (threadIdx.x == 0) {
            // The largest k for which at least k values are in the buckets from k on: first its thread's buckets, then k.
            int above = 0, thread = blockDim.x - 1;
            while (thread && above + of_thread[thread] < static_cast<int64>(thread) * run) above += of_thread[thread--];
            const int64 last = (thread + 1ll) * run - 1;
            int k = static_cast<int>(last < length ? last : length);
            above += counts[k];
            while (above < k) above += counts[--k];
            out[i] = k;
        }
        __syncthreads();
    }
}
