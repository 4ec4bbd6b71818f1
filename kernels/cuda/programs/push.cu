// Pushes the values of few sources to the rows that contain them: one thread an entry of these sources.
//
// There are four launches over the entries. The first three find for each row the best value and the first source that
// has it; the order in which threads run does not matter. Values are compared as `keys`, which are unsigned integers in
// the order of the values.
// VALUE, LARGEST, ALONG   as in extremes.cu.
#include "frontiers/lists.cuh"

#if VALUE == 0
typedef int Value;
#elif VALUE == 1
typedef long long Value;
#else
typedef double Value;
#endif
typedef unsigned long long Key;

constexpr Key WORST = ~0ull;

// A key that is smaller for a better value, and equal for equal values.
__device__ __forceinline__ Key key_of(Value value) {
#if VALUE == 2
    const Key bits = static_cast<Key>(__double_as_longlong(value));
    const Key key = bits >> 63 ? ~bits : bits | 1ull << 63;
#else
    const Key key = static_cast<Key>(static_cast<long long>(value)) ^ 1ull << 63;
#endif
#if LARGEST
    return ~key;
#else
    return key;
#endif
}

struct Entry {
    int source;  // index in `changed`
    int64 at;    // index in `row_of`
};

// The last i with starts[i] <= place.
__device__ __forceinline__ Entry entry_at(const int64* starts, const int* changed, int count, const int64* offsets, int64 place) {
    int low = 0, high = count;
    while (high - low > 1) {
        const int middle = (low + high) >> 1;
        if (starts[middle] <= place) {
            low = middle;
        } else {
            high = middle;
        }
    }
    return Entry{low, offsets[changed[low]] + place - starts[low]};
}

#define FOR_EACH_ENTRY(entry)                                                                                         \
    const int64 total = starts[count], stride = static_cast<int64>(gridDim.x) * blockDim.x;                           \
    for (int64 place = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; place < total; place += stride)     \
        if (const Entry entry = entry_at(starts, changed, count, offsets, place); true)

#define ARGUMENTS                                                                                                      \
    const int64 *__restrict__ starts, const int *__restrict__ changed, int count, const int64 *__restrict__ offsets,   \
        const int *__restrict__ row_of

// -0.0 becomes 0.0, as on CPUs.
__device__ __forceinline__ Value value_along(const Value* values, const double* weight, const Entry& entry) {
#if ALONG == 1
    return values[entry.source] + weight[entry.at] + 0.0;
#elif ALONG == 2
    return __dadd_rn(__dmul_rn(values[entry.source], weight[entry.at]), 0.0);
#elif VALUE == 2
    return values[entry.source] + 0.0;
#else
    return values[entry.source];
#endif
}

extern "C" __global__ void clear_keys(ARGUMENTS, Key* keys) {
    FOR_EACH_ENTRY(entry) keys[row_of[entry.at]] = WORST;
}

extern "C" __global__ void find_best(ARGUMENTS, const double* __restrict__ weight, const Value* __restrict__ values, Key* keys) {
    FOR_EACH_ENTRY(entry) atomicMin(&keys[row_of[entry.at]], key_of(value_along(values, weight, entry)));
}

// `best` is -1, the largest unsigned integer, at the start. The first thread that finds a source of a row lists the
// row.
extern "C" __global__ void find_source(ARGUMENTS, const double* __restrict__ weight, const Value* __restrict__ values,
                                       const Key* __restrict__ keys, uint32* best, int* touched, uint32* size) {
    FOR_EACH_ENTRY(entry) {
        const int row = row_of[entry.at];
        if (key_of(value_along(values, weight, entry)) != keys[row]) continue;
        if (atomicMin(&best[row], static_cast<uint32>(changed[entry.source])) == EMPTY) touched[atomicAdd(size, 1u)] = row;
    }
}

extern "C" __global__ void write_best(ARGUMENTS, const double* __restrict__ weight, const Value* __restrict__ values,
                                      const Key* __restrict__ keys, const uint32* __restrict__ best, Value* out) {
    FOR_EACH_ENTRY(entry) {
        const int row = row_of[entry.at];
        if (best[row] != static_cast<uint32>(changed[entry.source])) continue;
        const Value value = value_along(values, weight, entry);
        if (key_of(value) == keys[row]) out[row] = value;
    }
}

extern "C" __global__ void mark_rows(ARGUMENTS, bool* seen) {
    FOR_EACH_ENTRY(entry) seen[row_of[entry.at]] = true;
}

// Reaches the rows without a level, and lists these rows. The parent of a row is its smallest source. `parent` is -1,
// the largest unsigned integer, at the start.
extern "C" __global__ void reach_rows(ARGUMENTS, int step, int* level, uint32* parent, int* touched, uint32* size) {
    FOR_EACH_ENTRY(entry) {
        const int row = row_of[entry.at];
        int before = level[row];
        if (before < 0) {
            before = atomicCAS(&level[row], -1, step);
            if (before < 0) touched[atomicAdd(size, 1u)] = row;
        }
        if (before < 0 || before == step) atomicMin(&parent[row], static_cast<uint32>(changed[entry.source]));
    }
}
