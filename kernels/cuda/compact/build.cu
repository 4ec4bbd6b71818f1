// Building compact rows, and reading them.
//
// measure       One thread an edge: adds one to the lengths of its two rows.
// place         One thread a vertex: writes where its row begins, from prefix sums, and the row of every TILE-th
//               bucket.
// fill          One thread an edge: writes two entries, each with half of the count, if their rows are those of
//               vertices `first` to `last` - 1. Reads 8 bytes, and for each entry one or more buckets (32), in which it
//               takes a slot by compare-and-swap. `key` starts at the bucket `base`.
// measure_left  One thread a slot: computes the length of each row without removed edges.
// move          One thread a slot: copies the entries of remaining edges to new rows.
// known         One thread an edge: writes λ of removed edges, and the remaining triangles of the others.
//
// Edges         come as a CSR by lower ends: edge e leads from the row in `offsets` that contains e to high[e]. `known`
//               is λ, or -1 times the triangles of an edge that remains; only remaining edges get entries. Numbers of
//               edges have 64 bits. A kernel gets `edges` edges from edge `begin` on; `high` and `known` have these
//               edges alone.
#include "compact/rows.cuh"

__device__ __forceinline__ int64 first_thread() {
    return static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x;
}

__device__ __forceinline__ int64 all_threads() {
    return static_cast<int64>(gridDim.x) * blockDim.x;
}

__device__ __forceinline__ uint32 lower_end(const int64* __restrict__ offsets, int64 vertices, int64 edge) {
    return static_cast<uint32>(row_containing(offsets, vertices, edge));
}

extern "C" __global__ void measure(
    int64 begin, int64 edges, const int64* __restrict__ offsets, int64 vertices, const uint32* __restrict__ high,
    const int* __restrict__ known,
    uint32* length) {
    for (int64 e = first_thread(); e - (threadIdx.x & 31) < edges; e += all_threads()) {
        const bool given = e < edges && known[e] < 0;
        const uint32 u = given ? lower_end(offsets, vertices, begin + e) : EMPTY;
        // Edges of one low end are adjacent.
        const uint32 peers = __match_any_sync(ALL_LANES, u);
        if (given && (threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&length[u], static_cast<uint32>(__popc(peers)));
        if (given) atomicAdd(&length[high[e]], 1u);
    }
}

// `stop` are the inclusive prefix sums of the buckets of rows. `row_at` has one item for each tile that is begun, and
// one more.
extern "C" __global__ void place(int64 vertices, const int64* __restrict__ stop, Row* row, uint32* row_at) {
    for (int64 v = first_thread(); v < vertices; v += all_threads()) {
        const int64 begin = v ? stop[v - 1] : 0, end = stop[v];
        row[v] = {begin, static_cast<uint32>(end - begin), 0};
        for (int64 tile = (begin + TILE - 1) / TILE; tile * TILE < end; ++tile) row_at[tile] = static_cast<uint32>(v);
        if (v == vertices - 1) row_at[(end + TILE - 1) / TILE] = static_cast<uint32>(v);
    }
}

// The arrays that get entries. If an array begins at a later bucket than the rows, its pointer is moved back.
struct Target {
    uint32* key;
    int* word;
    uint32* filter;
};

__device__ __forceinline__ void put(const Row& row, const Target& to, uint32 neighbour, int word) {
    uint32 at = home_of(neighbour, row.buckets);
    const int64 home = row.begin + at;
    atomicOr(&to.filter[home >> 1], 1u << (filter_bit(neighbour) + 16 * (home & 1)));
    while (true) {
        const int64 bucket = 4 * (row.begin + at);
        for (int64 slot = bucket; slot < bucket + 4; ++slot) {
            uint32* const key = &to.key[STRIDE * slot];
            if (__ldcg(key) != EMPTY || atomicCAS(key, EMPTY, neighbour) != EMPTY) continue;
            to.word[STRIDE * slot] = word;
            return;
        }
        at = at + 1 == row.buckets ? 0 : at + 1;
    }
}

extern "C" __global__ void fill(
    int64 begin, int64 edges, const int64* __restrict__ offsets, int64 vertices, const uint32* __restrict__ high,
    const int* __restrict__ known,
    const Row* __restrict__ row, uint32 first, uint32 last, int64 base, uint32* key, int* word, uint32* filter) {
    const Target to = {key - 4 * STRIDE * base, word, filter};
    for (int64 e = first_thread(); e < edges; e += all_threads()) {
        if (known[e] >= 0) continue;
        const int all = -known[e], half = all >> 1;
        const uint32 u = lower_end(offsets, vertices, begin + e), v = high[e];
        if (u >= first && u < last) put(row[u], to, v, half);
        if (v >= first && v < last) put(row[v], to, u, all - half);
    }
}

extern "C" __global__ void measure_left(
    const Row* __restrict__ row, uint32* key, int* word, uint32* far_key, int64 far, const uint32* __restrict__ row_at, int64 slots, uint32* length) {
    const Rows rows = rows_of(row, key, word, far_key, far, nullptr);
    for (int64 i = first_thread(); i - (threadIdx.x & 31) < slots; i += all_threads()) {
        const bool stays = i < slots && stands(*word_at(rows, i));
        const uint32 v = stays ? row_of_bucket(rows, row_at, i / 4) : EMPTY;
        const uint32 peers = __match_any_sync(ALL_LANES, v);
        if (stays && (threadIdx.x & 31) == __ffs(peers) - 1) atomicAdd(&length[v], static_cast<uint32>(__popc(peers)));
    }
}

// Copies the entries of buckets `first` to `last` - 1 to the rows `moved`. `new_key`, `new_word` and `new_filter` are
// the new buckets from bucket `base` on, which is even.
extern "C" __global__ void move(
    const Row* __restrict__ row, uint32* key, int* word, uint32* far_key, int64 far, const uint32* __restrict__ row_at, int64 first, int64 last,
    const Row* __restrict__ moved, int64 base, uint32* new_key, int* new_word, uint32* new_filter) {
    const Rows rows = rows_of(row, key, word, far_key, far, nullptr);
    const Target to = {new_key - 4 * STRIDE * base, new_word - 4 * STRIDE * base, new_filter - base / 2};
    for (int64 i = 4 * first + first_thread(); i < 4 * last; i += all_threads()) {
        const int mine = *word_at(rows, i);
        if (stands(mine)) put(moved[row_of_bucket(rows, row_at, i / 4)], to, key_at(rows, i), mine);
    }
}

// `known` is below 0 for an edge of the rows, and λ for other edges. If an edge of the rows has left, its `known`
// becomes λ: level `starts[k].y` starts in round `starts[k].x`. Otherwise, if `counts` is true, its `known` becomes -1
// times its remaining triangles.
extern "C" __global__ void known(
    int64 begin, int64 edges, const int64* __restrict__ offsets, int64 vertices, const uint32* __restrict__ high, int* known,
    const Row* __restrict__ row, uint32* key, int* word, uint32* far_key, int64 far, const uint2* __restrict__ starts, int levels,
    bool counts) {
    const Rows rows = rows_of(row, key, word, far_key, far, nullptr);
    for (int64 e = first_thread(); e < edges; e += all_threads()) {
        if (known[e] >= 0) continue;
        const uint32 u = lower_end(offsets, vertices, begin + e), v = high[e];
        const Row here = row[u];
        const int word = find(rows, here, v).word;
        if (!stands(word)) {
            const uint32 round = static_cast<uint32>(word - LEAVES);
            int first = 0, after = levels;
            while (after - first > 1) {
                const int middle = (first + after) / 2;
                (starts[middle].x <= round ? first : after) = middle;
            }
            known[e] = static_cast<int>(starts[first].y);
        } else if (counts) {
            if (is_keeper(word)) {
                known[e] = KEEPER - word;
            } else {
                const int other = find(rows, row[v], u).word;
                known[e] = is_keeper(other) ? KEEPER - other : -word - other;
            }
        }
    }
}
