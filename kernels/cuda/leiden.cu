// The loops of the Leiden algorithm: sums of weights by group for each vertex, moves, mergers, and the graph of parts.
//
// Computes  kernels.leiden.Level, with the bits of kernels/cpu/leiden.py: products and sums of doubles are rounded one by one.
// Threads   `choose`, `choose_part`, `count_joined` and `join` sum the weights of each row by keys in a hash table. A warp takes a
//           row of at most FEW entries, with a table in shared memory; a block takes a row of at most MANY, with one in shared
//           memory, or a longer one, with one in global memory. Entries within the vertex's own group, which are most of them
//           in the end, are summed in registers. The other kernels have a thread a vertex, or a warp a row.
// Bytes     An entry takes 4 for its neighbour, 8 for its weight, and one read from a random address for its key.
#include "common.cuh"
#include "mix.cuh"

constexpr int NONE = 0x7FFFFFFF;  // the key of no group

#define FOR_EACH(i, count)                                                                      \
    const int64 stride_##i = static_cast<int64>(gridDim.x) * blockDim.x;                        \
    for (int64 i = static_cast<int64>(blockIdx.x) * blockDim.x + threadIdx.x; i < count; i += stride_##i)

// A warp for each item; `lane` is the thread's lane.
#define FOR_EACH_WARP(i, count)                                                                 \
    const int lane = threadIdx.x & 31;                                                          \
    const int64 warps_##i = static_cast<int64>(gridDim.x) * (blockDim.x >> 5);                  \
    for (int64 i = static_cast<int64>(blockIdx.x) * (blockDim.x >> 5) + (threadIdx.x >> 5); i < count; i += warps_##i)

__device__ __forceinline__ void add(int64* to, int64 value) {
    atomicAdd(reinterpret_cast<unsigned long long*>(to), static_cast<unsigned long long>(value));
}

__device__ __forceinline__ double product(int64 one, int64 other) {
    return __dmul_rn(static_cast<double>(one), static_cast<double>(other));
}

struct Rows {
    const int64* offsets;
    const int* neighbour;
    const int64* weight;
    const int64* size;  // [vertices], or of a directed graph [2 * vertices]
    int64 vertices;
    bool directed;
};

// `_expected` of kernels/cpu/leiden.py times the resolution. `total` has `half` groups.
__device__ __forceinline__ double expected(
    const Rows& rows, const int64* size, int64 v, const int64* total, int64 half, int64 group, int64 inside, double resolution
) {
    if (!rows.directed) return __dmul_rn(resolution, product(size[v], total[group] - size[v] * inside));
    const int64 out_edges = size[v], in_edges = size[rows.vertices + v];
    const double one = product(out_edges, total[half + group] - in_edges * inside);
    return __dmul_rn(resolution, __dadd_rn(one, product(in_edges, total[group] - out_edges * inside)));
}

struct Choice {
    double gain;
    int key;
    int64 links;

    __device__ __forceinline__ void take(double other_gain, int other_key, int64 other_links) {
        if (other_gain > gain || (other_gain == gain && other_key < key)) gain = other_gain, key = other_key, links = other_links;
    }
};

// The threads of a warp (THREADS = 32) or a block, which sum the weights of one row.
template <int THREADS>
struct Team {
    __device__ static int rank() { return THREADS == 32 ? threadIdx.x & 31 : threadIdx.x; }

    __device__ static void wait() {
        if constexpr (THREADS == 32) __syncwarp();
        else __syncthreads();
    }

    // Every thread gets the result. For blocks, `room` [THREADS / 32] is in shared memory.
    __device__ static int64 sum(int64 value, Choice* room) {
        for (int step = 16; step; step /= 2) value += __shfl_xor_sync(ALL_LANES, value, step);
        if constexpr (THREADS > 32) {
            if (!(threadIdx.x & 31)) room[threadIdx.x >> 5].links = value;
            __syncthreads();
            value = 0;
            for (int warp = 0; warp < THREADS / 32; ++warp) value += room[warp].links;
            __syncthreads();
        }
        return value;
    }

    __device__ static Choice best(Choice own, Choice* room) {
        for (int step = 16; step; step /= 2) {
            const double gain = __shfl_xor_sync(ALL_LANES, own.gain, step);
            const int key = __shfl_xor_sync(ALL_LANES, own.key, step);
            const int64 links = __shfl_xor_sync(ALL_LANES, own.links, step);
            own.take(gain, key, links);
        }
        if constexpr (THREADS > 32) {
            if (!(threadIdx.x & 31)) room[threadIdx.x >> 5] = own;
            __syncthreads();
            for (int warp = 0; warp < THREADS / 32; ++warp) own.take(room[warp].gain, room[warp].key, room[warp].links);
            __syncthreads();
        }
        return own;
    }
};

struct Table {
    int* keys;
    int64* sums;
    int64 slots;  // a power of two

    __device__ __forceinline__ void add_to(int key, int64 weight) {
        int64 slot = (static_cast<uint64>(key) * 0x9E3779B97F4A7C15ull >> 32) & (slots - 1);
        while (true) {
            int there = *static_cast<volatile int*>(keys + slot);
            if (there < 0) there = atomicCAS(keys + slot, -1, key);
            if (there < 0 || there == key) break;
            slot = (slot + 1) & (slots - 1);
        }
        add(sums + slot, weight);
    }
};

// The smallest table for a row, whose slots are a multiple of the threads; at most the slots that there are.
template <int THREADS>
__device__ __forceinline__ int64 slots_for(int64 entries, int64 most) {
    int64 slots = THREADS;
    while (slots < 2 * entries && slots < most) slots *= 2;
    return slots;
}

// Calls job.begin(item), which says whether the row is to be summed, job.take(key, sum) for each key of the row that is not
// job.own, and job.end(weight of entries with the key job.own).
template <int THREADS, class Job>
__device__ __forceinline__ void sum_row(Job& job, int64 item, Table table, Choice* room) {
    using Own = Team<THREADS>;
    if (!job.begin(item)) return;
    table.slots = slots_for<THREADS>(job.stop - job.start, table.slots);
    for (int64 slot = Own::rank(); slot < table.slots; slot += THREADS) table.keys[slot] = -1, table.sums[slot] = 0;
    Own::wait();
    int64 inside = 0;
    for (int64 at = job.start + Own::rank(); at < job.stop; at += THREADS) {
        const int key = job.key_at(at);
        if (key == job.own) inside += job.weight[at];
        else table.add_to(key, job.weight[at]);
    }
    Own::wait();
    for (int64 slot = Own::rank(); slot < table.slots; slot += THREADS) {
        const int key = table.keys[slot];
        const int64 sum = table.sums[slot];
        job.template take<Own>(key, sum);
    }
    job.template end<Own>(inside, room);
    Own::wait();
}

template <class Job>
__device__ __forceinline__ void by_warps(Job job, int64 items) {
    __shared__ int keys[WARPS * 2 * FEW];
    __shared__ int64 sums[WARPS * 2 * FEW];
    const int warp = threadIdx.x >> 5;
    const int64 warps = static_cast<int64>(gridDim.x) * WARPS;
    for (int64 item = static_cast<int64>(blockIdx.x) * WARPS + warp; item < items; item += warps)
        sum_row<32>(job, item, Table{keys + warp * 2 * FEW, sums + warp * 2 * FEW, 2 * FEW}, nullptr);
}

template <class Job>
__device__ __forceinline__ void by_blocks(Job job, int64 items) {
    __shared__ int keys[2 * MANY];
    __shared__ int64 sums[2 * MANY];
    __shared__ Choice room[WARPS];
    for (int64 item = blockIdx.x; item < items; item += gridDim.x) sum_row<32 * WARPS>(job, item, Table{keys, sums, 2 * MANY}, room);
}

template <class Job>
__device__ __forceinline__ void by_large_blocks(Job job, int64 items, int* keys, int64* sums, int64 slots) {
    __shared__ Choice room[32];
    for (int64 item = blockIdx.x; item < items; item += gridDim.x)
        sum_row<1024>(job, item, Table{keys + blockIdx.x * slots, sums + blockIdx.x * slots, slots}, room);
}

struct RowJob {
    Rows rows;
    const int* key;  // [vertices]
    const int* chosen;
    double resolution;
    const int64* weight;
    int64 start, stop;
    int own, v;

    __device__ __forceinline__ void read(int64 item) {
        v = chosen[item];
        start = rows.offsets[v], stop = rows.offsets[v + 1];
    }

    __device__ __forceinline__ int key_at(int64 at) const { return key[rows.neighbour[at]]; }
};

struct Move : RowJob {
    const int64* total;
    const int64* count;
    int* before;
    int* target;
    Choice choice;
    int64 item;

    __device__ __forceinline__ bool begin(int64 number) {
        item = number;
        read(number);
        own = key[v];
        choice = {__longlong_as_double(0xFFF0000000000000ll), NONE, 0};  // minus infinity
        return true;
    }

    template <class Own>
    __device__ __forceinline__ void take(int other, int64 links) {
        if (other < 0) return;
        const double random = expected(rows, rows.size, v, total, 2 * rows.vertices, other, 0, resolution);
        choice.take(__dsub_rn(static_cast<double>(links), random), other, links);
    }

    template <class Own>
    __device__ __forceinline__ void end(int64 inside, Choice* room) {
        inside = Own::sum(inside, room);
        choice = Own::best(choice, room);
        if (Own::rank()) return;
        const double random = expected(rows, rows.size, v, total, 2 * rows.vertices, own, 1, resolution);
        const double stays = __dsub_rn(static_cast<double>(inside), random);
        int best = choice.key == NONE ? own : choice.key;
        if (choice.gain <= stays || (count[own] == 1 && count[best] == 1 && best > own)) best = own;
        if (max(choice.gain, stays) < 0) {
            const int alone = count[v] == 0 ? v : static_cast<int>(rows.vertices) + v;
            if (count[alone] == 0) best = alone;
        }
        before[item] = own;
        target[item] = best;
    }
};

struct Parting : RowJob {
    const int* group;
    const int64* total;
    int64 groups;
    const bool* is_joined;
    const int64* sizes;
    const int64* outside;
    int* wanted;
    int64* links_of;
    Choice choice;
    int64 item;

    __device__ __forceinline__ bool is_connected(const int64* size, int64 part) const {
        return static_cast<double>(outside[part]) >= expected(rows, size, part, total, groups, group[v], 1, resolution);
    }

    __device__ __forceinline__ bool begin(int64 number) {
        item = number;
        read(number);
        own = v;
        choice = {0.0, NONE, 0};
        return key[v] == v && !is_joined[v] && is_connected(rows.size, v);
    }

    template <class Own>
    __device__ __forceinline__ void take(int part, int64 links) {
        if (part < 0 || group[part] != group[v] || !is_connected(sizes, part)) return;
        const double random = expected(rows, rows.size, v, sizes, rows.vertices, part, 0, resolution);
        const double gain = __dsub_rn(static_cast<double>(links), random);
        if (gain > 0) choice.take(gain, part, links);
    }

    template <class Own>
    __device__ __forceinline__ void end(int64, Choice* room) {
        choice = Own::best(choice, room);
        if (Own::rank()) return;
        wanted[v] = choice.key == NONE ? v : choice.key;
        links_of[item] = choice.links;
    }
};

// The rows of parts: entry q of a part, in the order of parts, is the part of a neighbour.
struct Joining {
    const int64* offsets;  // [parts + 1]
    const int* neighbour;  // [entries] parts
    const int64* weight;
    const int* chosen;  // parts
    int64* found;       // [parts] the number of neighbours of each; null to write them
    const int64* rows;  // [parts + 1]
    int* used;          // [parts] neighbours that are written; 0 at first
    int* to;
    int64* joined;
    int64 start, stop;
    int own;
    int64 neighbours;

    __device__ __forceinline__ int key_at(int64 at) const { return neighbour[at]; }

    __device__ __forceinline__ bool begin(int64 item) {
        own = chosen[item];
        start = offsets[own], stop = offsets[own + 1];
        neighbours = 0;
        return true;
    }

    template <class Own>
    __device__ __forceinline__ void take(int other, int64 links) {
        const uint32 there = __ballot_sync(ALL_LANES, other >= 0);
        if (found) {
            neighbours += other >= 0;
            return;
        }
        if (!there) return;
        int at = 0;
        if (!(threadIdx.x & 31)) at = atomicAdd(used + own, __popc(there));
        at = __shfl_sync(ALL_LANES, at, 0);
        if (other < 0) return;
        const int64 place = rows[own] + at + __popc(there & ((1u << (threadIdx.x & 31)) - 1));
        to[place] = other;
        joined[place] = links;
    }

    template <class Own>
    __device__ __forceinline__ void end(int64, Choice* room) {
        if (!found) return;
        neighbours = Own::sum(neighbours, room);
        if (!Own::rank()) found[own] = neighbours;
    }
};

#define ROWS const int64 *offsets, const int *neighbour, const int64 *weight, const int64 *size, int64 vertices, bool directed
#define TABLES int *keys, int64 *sums, int64 slots

#define KERNELS(NAME, JOB, ...)                                                                                            \
    extern "C" __global__ void __launch_bounds__(32 * WARPS) NAME##_few(int64 items, __VA_ARGS__) { by_warps(JOB, items); }      \
    extern "C" __global__ void __launch_bounds__(32 * WARPS) NAME##_many(int64 items, __VA_ARGS__) { by_blocks(JOB, items); }    \
    extern "C" __global__ void __launch_bounds__(1024) NAME##_most(int64 items, TABLES, __VA_ARGS__) {                     \
        by_large_blocks(JOB, items, keys, sums, slots);                                                                    \
    }

#define ROW_JOB(KEY) \
    RowJob { Rows{offsets, neighbour, weight, size, vertices, directed}, KEY, chosen, resolution, weight, 0, 0, 0, 0 }

KERNELS(
    choose, (Move{ROW_JOB(group), total, count, before, target, {}, 0}), const int* chosen, int* before, int* target, ROWS,
    const int* group, const int64* total, const int64* count, double resolution
)
KERNELS(
    choose_part, (Parting{ROW_JOB(part), group, total, groups, is_joined, sizes, outside, wanted, links, {}, 0}),
    const int* chosen, int64* links, ROWS, const int* group, const int64* total, int64 groups, double resolution,
    const int* part, const bool* is_joined, const int64* sizes, const int64* outside, int* wanted
)
KERNELS(
    join, (Joining{offsets, neighbour, weight, chosen, found, rows, used, to, joined, 0, 0, 0, 0}), const int* chosen,
    const int64* offsets, const int* neighbour, const int64* weight, int64* found, const int64* rows, int* used, int* to, int64* joined
)

// The class of each vertex in a round, times 3, and how its row is summed.
extern "C" __global__ void find_classes(const int* vertices, int64 count, const int64* offsets, int64 number, signed char* found) {
    FOR_EACH(i, count) {
        const int v = vertices[i];
        const int64 entries = offsets[v + 1] - offsets[v];
        const int own = mixed((static_cast<uint64>(v) << 20) + number) % CLASSES;
        found[i] = 3 * own + (entries > FEW) + (entries > MANY);
    }
}

extern "C" __global__ void move(
    const int* chosen, int64 count, const int* before, const int* target, const int64* size, int64 vertices, bool directed,
    int* group, int64* total, int64* members, bool* active, int64* moved
) {
    int64 own = 0;
    FOR_EACH(i, count) {
        const int v = chosen[i], from = before[i], to = target[i];
        active[v] = false;
        if (to == from) continue;
        add(total + from, -size[v]);
        add(total + to, size[v]);
        if (directed) {
            add(total + 2 * vertices + from, -size[vertices + v]);
            add(total + 2 * vertices + to, size[vertices + v]);
        }
        add(members + from, -1);
        add(members + to, 1);
        group[v] = to;
        ++own;
    }
    if (own) add(moved, own);
}

extern "C" __global__ void activate(
    const int* chosen, int64 count, const int* before, const int* target, const int64* offsets, const int* neighbour,
    const int* group, bool* active
) {
    FOR_EACH_WARP(i, count) {
        const int v = chosen[i], to = target[i];
        if (to == before[i]) continue;
        for (int64 at = offsets[v] + lane; at < offsets[v + 1]; at += 32)
            if (group[neighbour[at]] != to) active[neighbour[at]] = true;
    }
}

// Merges the chosen vertices to the parts that they want, and marks those that are left.
extern "C" __global__ void merge(
    const int* chosen, int64 count, const int64* size, int64 vertices, bool directed, const int64* links, const int* wanted,
    int* part, bool* is_joined, int64* sizes, int64* outside, bool* left
) {
    FOR_EACH(i, count) {
        const int v = chosen[i], to = wanted[v];
        left[i] = to != v && wanted[to] != to && (wanted[to] != v || v < to);
        if (to == v || left[i]) continue;
        part[v] = to;
        is_joined[to] = true;
        add(sizes + to, size[v]);
        if (directed) add(sizes + vertices + to, size[vertices + v]);
        add(outside + to, outside[v] - links[i]);
    }
}

__device__ __forceinline__ int64 warp_within(const int64* offsets, const int* neighbour, const int64* weight, const int* group, int v) {
    int64 found = 0;
    for (int64 at = offsets[v] + (threadIdx.x & 31); at < offsets[v + 1]; at += 32)
        if (group[neighbour[at]] == group[v]) found += weight[at];
    return Team<32>::sum(found, nullptr);
}

// Subtracts from each part the edges of merged vertices to its other vertices, and forgets what was wanted.
extern "C" __global__ void count_merged(
    const int* chosen, int64 count, const int64* offsets, const int* neighbour, const int64* weight, const int* part,
    const bool* left, int64* outside, int* wanted
) {
    FOR_EACH_WARP(i, count) {
        const int v = chosen[i];
        const bool merged = wanted[v] != v && !left[i];
        __syncwarp();
        const int64 inside = merged ? warp_within(offsets, neighbour, weight, part, v) : 0;
        if (lane) continue;
        wanted[v] = v;
        if (merged) add(outside + part[v], -inside);
    }
}

extern "C" __global__ void within(
    const int64* offsets, int64 vertices, const int* neighbour, const int64* weight, const int* group, int64* found
) {
    FOR_EACH_WARP(v, vertices) {
        const int64 inside = warp_within(offsets, neighbour, weight, group, v);
        if (!lane) found[v] = inside;
    }
}

extern "C" __global__ void first_of(const int* part, int64 vertices, int* first) {
    FOR_EACH(v, vertices) if (*static_cast<volatile int*>(first + part[v]) > v) atomicMin(first + part[v], static_cast<int>(v));
}

extern "C" __global__ void add_sizes(const int* group, int64 vertices, const int64* size, int64* found) {
    FOR_EACH(v, vertices) add(found + group[v], size[v]);
}

// Copies the rows of `order` one after the other, with the parts of neighbours.
extern "C" __global__ void copy_rows(
    const int* order, int64 vertices, const int64* offsets, const int* neighbour, const int64* weight, const int* part,
    const int64* starts, int* to, int64* weights
) {
    FOR_EACH_WARP(i, vertices) {
        const int64 first = offsets[order[i]], count = offsets[order[i] + 1] - first;
        for (int64 at = lane; at < count; at += 32) {
            to[starts[i] + at] = part[neighbour[first + at]];
            weights[starts[i] + at] = weight[first + at];
        }
    }
}

__device__ __forceinline__ uint64 entry_hash(uint64 v, uint64 neighbour, uint64 weight) {
    return mixed(mixed((v << 32) + neighbour) + weight);
}

extern "C" __global__ void hash(
    const int64* offsets, int64 vertices, const int* neighbour, const int64* weight, const int64* size, bool directed, int64* found
) {
    uint64 first = 0, second = 0;
    const auto take = [&](uint64 word) {
        first += word;
        second += mixed(word ^ 0xA5A5A5A5A5A5A5A5ull);
    };
    FOR_EACH_WARP(v, vertices) {
        for (int64 at = offsets[v] + lane; at < offsets[v + 1]; at += 32) take(entry_hash(v, neighbour[at], weight[at]));
        if (lane < 1 + directed) take(entry_hash(v + lane * vertices, vertices, size[v + lane * vertices]));
    }
    const int64 one = Team<32>::sum(first, nullptr), other = Team<32>::sum(second, nullptr);
    if (lane) return;
    add(found, one);
    add(found + 1, other);
}
