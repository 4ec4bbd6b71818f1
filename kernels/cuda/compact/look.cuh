// Examines words between two rounds: which edges leave next, which edges get equal halves, and which entry becomes the
// keeper of a count.
//
// Reads     all words at the start of a window of levels and after rounds in which many edges left; the noted edges at
//           other levels; the edges that gave an alarm after other rounds. Each examined edge takes a lookup of its
//           other entry.
#pragma once
#include "compact/state.cuh"

constexpr int LOOKS = 8;  // slots that a lane reads at the same time

// A warp examines up to 32 edges, one a lane. If `notes` is true, keepers that remain are added to the noted edges.
// Returns a lower bound of the triangles of the lane's edge, or NOTHING if it is not known or the edge leaves.
__device__ __noinline__ int look_at(
    const Rows rows, const Lists lists, const Limits limits, bool given, uint2 edge, bool notes) {
    int64 own = 0, other = 0;
    int sum = 0, before = 0;
    bool claimed = false, note = false;
    if (given) {
        own = 4 * rows.row[edge.x].begin + edge.y;
        before = __ldcg(word_at(rows, own));
        if (is_keeper(before)) {
            sum = before - KEEPER;
            note = notes && sum > limits.level;
            if (sum <= limits.level) {
                const Row row = rows.row[key_at(rows, own)];
                other = 4 * row.begin + find(rows, row, edge.x).at;
                claimed = atomicCAS(word_at(rows, own), before, LOCKED) == before;
            }
        } else if (is_split(before) && before <= limits.alarm) {
            const uint32 neighbour = key_at(rows, own);
            const Row row = rows.row[neighbour];
            const uint32 at = find(rows, row, edge.x).at;
            other = 4 * row.begin + at;
            if (neighbour < edge.x) {
                const int64 mine = own;
                own = other;
                other = mine;
                edge = make_uint2(neighbour, at);
            }
            before = __ldcg(word_at(rows, own));
            claimed = is_split(before) && atomicCAS(word_at(rows, own), before, LOCKED) == before;
            __threadfence();
            if (claimed) sum = before + __ldcg(word_at(rows, other));
        }
    }
    const bool leaves = claimed && sum <= limits.level;
    const uint32 place = room_for(&lists.state->tail, leaves);
    const bool fits = leaves && place - limits.base < lists.ring_room;
    int least = claimed || note ? sum : NOTHING;
    if (claimed) {
        int here = KEEPER + sum, there = REPORTER;
        if (fits) {
            here = there = leaves_in(limits.round);
            lists.ring[place & (lists.ring_room - 1)] = edge;
            least = NOTHING;
        } else if (sum > 2 * limits.alarm + 1) {
            here = sum / 2;
            there = sum - here;
        } else {
            note = !leaves;
        }
        *word_at(rows, other) = there;
        __threadfence();
        *word_at(rows, own) = here;
    }
    const uint32 at = room_for(&lists.state->notes, note);
    if (note && at < lists.noted_room) lists.noted[at] = edge;
    return least;
}

// Examines `size` listed edges (noted edges, or edges that gave an alarm). Edges with at most `level` triangles leave.
__device__ __forceinline__ void look_at_listed(
    const Rows& rows, const Lists& lists, const Limits& limits, const uint2* listed, uint32 size) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x, lane = threadIdx.x & 31;
    for (uint32 i = thread - lane; i < size; i += threads) {
        const bool given = i + lane < size;
        look_at(rows, lists, limits, given, given ? __ldcg(&listed[i + lane]) : make_uint2(0, 0), false);
    }
}

// A warp examines the edges of the last slots in its list `kept`, at most 32, and removes these slots from the list.
__device__ __forceinline__ int look_at_kept(
    const Rows& rows, const uint32* __restrict__ row_at, const Lists& lists, const Limits& limits, const int64* kept, int& many) {
    __syncwarp();
    const int lane = threadIdx.x & 31, first = max(many - 32, 0);
    const bool given = first + lane < many;
    const int64 slot = given ? kept[first + lane] : 0;
    uint2 edge = make_uint2(0, 0);
    if (given) {
        edge.x = row_of_bucket(rows, row_at, slot / 4);
        edge.y = static_cast<uint32>(slot - 4 * rows.row[edge.x].begin);
    }
    const int least = look_at(rows, lists, limits, given, edge, true);
    many = first;
    __syncwarp();
    return least;
}

// Examines all edges. The list of noted edges is empty before. `kept` is the warp's list, with space for 64 slots.
__device__ __noinline__ void look_at_all(
    const Rows rows, const uint32* __restrict__ row_at, int64 slots, const Lists lists, const Limits limits, int64* kept) {
    const int64 warp = (blockIdx.x * static_cast<int64>(blockDim.x) + threadIdx.x) >> 5, warps = (gridDim.x * blockDim.x) >> 5;
    const int lane = threadIdx.x & 31;
    int least = NOTHING, many = 0;
    for (int64 first = warp * 32 * LOOKS; first < slots; first += warps * 32 * LOOKS) {
        int word[LOOKS];
#pragma unroll
        for (int k = 0; k < LOOKS; ++k) {
            const int64 at = first + 32 * k + lane;
            word[k] = at < slots ? __ldcg(word_at(rows, at)) : VACANT;
        }
#pragma unroll
        for (int k = 0; k < LOOKS; ++k) {
            const bool low = is_split(word[k]) && word[k] <= limits.alarm;
            const bool keeps = low || is_keeper(word[k]);
            if (is_split(word[k]) && !low) least = min(least, 2 * word[k]);
            const uint32 lanes = __ballot_sync(ALL_LANES, keeps);
            if (keeps) kept[many + __popc(lanes & ((1u << lane) - 1))] = first + 32 * k + lane;
            many += __popc(lanes);
            if (many >= 32) least = min(least, look_at_kept(rows, row_at, lists, limits, kept, many));
        }
    }
    if (many) least = min(least, look_at_kept(rows, row_at, lists, limits, kept, many));
    least = warp_min(least);
    if (lane == 0 && least < NOTHING) atomicMin(&lists.state->least, least);
}

// Writes `word` to both entries of the edges ring[from .. to), whose count a round has lowered to the level.
__device__ __forceinline__ void mark(const Rows& rows, const Lists& lists, int word, uint32 from, uint32 to) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (uint32 i = thread; i < to - from; i += threads) {
        const uint2 edge = __ldcg(&lists.ring[(from + i) & (lists.ring_room - 1)]);
        const int64 own = 4 * rows.row[edge.x].begin + edge.y;
        const uint32 neighbour = key_at(rows, own);
        const Row row = rows.row[neighbour];
        *word_at(rows, own) = word;
        *word_at(rows, 4 * row.begin + find(rows, row, edge.x).at) = word;
    }
}
