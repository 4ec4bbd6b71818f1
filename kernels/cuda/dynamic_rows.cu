// Sorted rows that change by batches; the counterpart of kernels.cpu.update.dynamic_rows.
//
// A row has entries for both directions of its edges, ascending, in [begin, begin + length). The entry of an edge at its lower end
// holds its support. All kernels have one thread an item, and items of long and short rows are spread evenly: the row of an item comes
// from a binary search in `sums`, the offsets of the items of each row, of which the lanes of a warp read the same words.
//
// find_pairs     A pair: a binary search in a row. Writes the entry, -1 for a pair that is no edge.
// merge_old      An entry of a touched row: moves it to its place among the row's new neighbours, by a search in those.
// merge_new      A new neighbour: writes it to its place in the row, by a search in the row.
// move_rows      A touched row: its new place and length.
// take_out       An entry of a touched row, from a copy of these: writes it to the row's place if it stays.
// copy_entries   An entry of a touched row: its neighbour and support to a dense copy.
// pack_rows      An entry of any row: copies it to the row's new place.
// count_common   An entry of the shorter row of an edge of the batch: searches it in the longer row, and changes supports.
#include "common.cuh"

#define FOR_EACH(i, count)                                                                                                    \
    const int64 stride = static_cast<int64>(gridDim.x) * blockDim.x;                                                         \
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride)

// The first place in the ascending values [first, stop) that is not below `value`.
__device__ __forceinline__ int64 place_of(const int* values, int64 first, int64 stop, int value) {
    while (first < stop) {
        const int64 middle = (first + stop) >> 1;
        if (values[middle] < value) {
            first = middle + 1;
        } else {
            stop = middle;
        }
    }
    return first;
}

// The entry of v in the row of u, or -1.
__device__ __forceinline__ int64 entry_of(const int64* begin, const int64* length, const int* neighbour, int u, int v) {
    const int64 stop = begin[u] + length[u], at = place_of(neighbour, begin[u], stop, v);
    return at < stop && neighbour[at] == v ? at : -1;
}

extern "C" __global__ void find_pairs(
    const int64* __restrict__ begin, const int64* __restrict__ length, const int* __restrict__ neighbour, const int* __restrict__ low,
    const int* __restrict__ high, int64 pairs, int64* found) {
    FOR_EACH(i, pairs) found[i] = entry_of(begin, length, neighbour, low[i], high[i]);
}

extern "C" __global__ void merge_old(
    const int* __restrict__ rows, const int64* __restrict__ starts, const int* __restrict__ ends, const int64* __restrict__ sums,
    int64 touched, int64 entries, const int64* __restrict__ begin, const int64* __restrict__ to, int* neighbour, int* support) {
    FOR_EACH(i, entries) {
        const int64 r = row_containing(sums, touched, i), at = i - sums[r], from = begin[rows[r]] + at;
        const int vertex = neighbour[from];
        const int64 target = to[r] + at + place_of(ends, starts[r], starts[r + 1], vertex) - starts[r];
        neighbour[target] = vertex;
        support[target] = support[from];
    }
}

extern "C" __global__ void merge_new(
    const int* __restrict__ rows, const int64* __restrict__ starts, const int* __restrict__ ends, int64 touched, int64 entries,
    const int64* __restrict__ begin, const int64* __restrict__ length, const int64* __restrict__ to, int* neighbour, int* support,
    int flag) {
    FOR_EACH(i, entries) {
        const int64 r = row_containing(starts, touched, i), first = begin[rows[r]];
        const int64 target = to[r] + (i - starts[r]) + place_of(neighbour, first, first + length[rows[r]], ends[i]) - first;
        neighbour[target] = ends[i];
        support[target] = flag;
    }
}

extern "C" __global__ void move_rows(
    const int* __restrict__ rows, const int64* __restrict__ starts, int64 touched, const int64* __restrict__ to, int64* begin,
    int64* length, int sign) {
    FOR_EACH(r, touched) {
        if (to) begin[rows[r]] = to[r];
        length[rows[r]] += sign * (starts[r + 1] - starts[r]);
    }
}

extern "C" __global__ void copy_entries(
    const int* __restrict__ rows, const int64* __restrict__ sums, int64 touched, int64 entries, const int64* __restrict__ begin,
    const int* __restrict__ neighbour, const int* __restrict__ support, int* old_neighbour, int* old_support) {
    FOR_EACH(i, entries) {
        const int64 r = row_containing(sums, touched, i), from = begin[rows[r]] + i - sums[r];
        old_neighbour[i] = neighbour[from];
        old_support[i] = support[from];
    }
}

extern "C" __global__ void take_out(
    const int* __restrict__ rows, const int64* __restrict__ starts, const int* __restrict__ ends, const int64* __restrict__ sums,
    int64 touched, int64 entries, const int64* __restrict__ begin, const int* __restrict__ old_neighbour,
    const int* __restrict__ old_support, int* neighbour, int* support) {
    FOR_EACH(i, entries) {
        const int64 r = row_containing(sums, touched, i);
        const int vertex = old_neighbour[i];
        const int64 at = place_of(ends, starts[r], starts[r + 1], vertex);
        if (at < starts[r + 1] && ends[at] == vertex) continue;
        const int64 target = begin[rows[r]] + (i - sums[r]) - (at - starts[r]);
        neighbour[target] = vertex;
        support[target] = old_support[i];
    }
}

extern "C" __global__ void pack_rows(
    const int64* __restrict__ sums, int64 vertices, int64 entries, const int64* __restrict__ begin, const int* __restrict__ neighbour,
    const int* __restrict__ support, int* new_neighbour, int* new_support) {
    FOR_EACH(i, entries) {
        const int64 v = row_containing(sums, vertices, i), from = begin[v] + i - sums[v];
        new_neighbour[i] = neighbour[from];
        new_support[i] = support[from];
    }
}

// Whether the pair (u, v), u < v, is before another one, whose ends are in any order.
__device__ __forceinline__ bool comes_first(int u, int v, int other_u, int other_v) {
    const int a = min(other_u, other_v);
    return u < a || (u == a && v < max(other_u, other_v));
}

// Edges of the batch have a support of `flag` or more. A triangle with several of them changes supports at the first one.
extern "C" __global__ void count_common(
    const int* __restrict__ low, const int* __restrict__ high, const int64* __restrict__ sums, int64 pairs, int64 entries,
    const int64* __restrict__ begin, const int64* __restrict__ length, const int* __restrict__ neighbour, int* support, int change,
    int flag, int* own) {
    FOR_EACH(t, entries) {
        const int64 i = row_containing(sums, pairs, t);
        int u = low[i], v = high[i];
        if (length[u] > length[v]) {
            const int longer = u;
            u = v;
            v = longer;
        }
        const int64 first = begin[u] + t - sums[i];
        const int w = neighbour[first];
        const int64 second = entry_of(begin, length, neighbour, v, w);
        if (second < 0) continue;
        atomicAdd(&own[i], 1);
        const int64 f = u < w ? first : entry_of(begin, length, neighbour, w, u);
        const int64 g = v < w ? second : entry_of(begin, length, neighbour, w, v);
        const bool f_too = support[f] >= flag / 2, g_too = support[g] >= flag / 2;
        if (f_too && !comes_first(low[i], high[i], u, w)) continue;
        if (g_too && !comes_first(low[i], high[i], v, w)) continue;
        if (!f_too) atomicAdd(&support[f], change);
        if (!g_too) atomicAdd(&support[g], change);
    }
}
