// Pages of integers as Parquet's DELTA_BINARY_PACKED has them, and their checksums.
//
// Computes  kernels.gpu.delta. A page is a run of values: its levels, a head with the first value, then blocks of BLOCK
//           differences. A block has its least difference, a width for each of its parts, and what the differences are
//           above the least one, packed with these widths.
// Threads   begin_pages a thread for each page; measure and pack a warp for each block; check a block for each page.
#include "common.cuh"

typedef unsigned char byte;
typedef unsigned long long uint64;

constexpr int BLOCK = 128, PART = 32, PARTS = BLOCK / PART;
constexpr int WARPS = 8;

constexpr uint32 POLYNOMIAL = 0xEDB88320u;  // of CRC-32, the highest power of x in the lowest bit
constexpr uint32 ONE = 0x80000000u;         // the polynomial 1
constexpr int POWERS = 32;

__device__ __forceinline__ uint64 zigzag(int64 value) { return static_cast<uint64>(value) << 1 ^ static_cast<uint64>(value >> 63); }

__device__ __forceinline__ int varint_bytes(uint64 value) {
    int bytes = 1;
    while (value >>= 7) bytes++;
    return bytes;
}

__device__ __forceinline__ int put_varint(byte* target, uint64 value) {
    int at = 0;
    for (; value > 127; value >>= 7) target[at++] = static_cast<byte>(value | 128);
    target[at++] = static_cast<byte>(value);
    return at;
}

// The levels, which say that all values are there, and the head of a page. Writes nothing without a target.
__device__ int put_begin(byte* target, uint64 count, int64 first) {
    const int levels = varint_bytes(count << 1) + 1;
    const int bytes = 4 + levels + 3 + varint_bytes(count) + varint_bytes(zigzag(first));
    if (!target) return bytes;
    for (int i = 0; i < 4; i++) *target++ = static_cast<byte>(levels >> 8 * i);
    target += put_varint(target, count << 1);
    *target++ = 1;
    target += put_varint(target, BLOCK);
    target += put_varint(target, PARTS);
    target += put_varint(target, count);
    put_varint(target, zigzag(first));
    return bytes;
}

template <typename Value>
__device__ void begin(const Value* __restrict__ values, const int64* __restrict__ starts, int pages, int* bytes, const int64* offsets, byte* content) {
    for (int page = blockIdx.x * blockDim.x + threadIdx.x; page < pages; page += gridDim.x * blockDim.x) {
        byte* target = content ? content + offsets[page] : nullptr;
        const int found = put_begin(target, starts[page + 1] - starts[page], values[starts[page]]);
        if (!content) bytes[page] = found;
    }
}

// What a warp needs to know of its block of differences. Each lane has one difference of each part.
template <typename Value, typename Bits>
struct Differences {
    Bits above[PARTS];  // what the difference of the lane is above the least one, 0 if there is none
    int width[PARTS];
    int64 least;
    int parts;  // that have a difference

    // `count` is the number of differences of the page from `values` on. `smallest` and `largest` of the values of a lane.
    __device__ void read(const Value* __restrict__ values, int64 count, int64& smallest, int64& largest) {
        const int lane = threadIdx.x & 31;
        Value low = sizeof(Value) == 4 ? static_cast<Value>(0x7FFFFFFF) : static_cast<Value>(0x7FFFFFFFFFFFFFFFll);
        parts = static_cast<int>(min((count + PART - 1) / PART, static_cast<int64>(PARTS)));
        for (int part = 0; part < PARTS; part++) {
            const int64 i = part * PART + lane;
            if (i < count) {
                const Value next = values[i + 1];
                const Bits step = static_cast<Bits>(next) - static_cast<Bits>(values[i]);
                above[part] = step;
                low = min(low, static_cast<Value>(step));
                smallest = min(smallest, static_cast<int64>(next));
                largest = max(largest, static_cast<int64>(next));
            }
        }
        for (int step = 16; step; step /= 2) low = min(low, static_cast<Value>(__shfl_xor_sync(ALL_LANES, low, step)));
        least = low;
        for (int part = 0; part < PARTS; part++) {
            const int64 i = part * PART + lane;
            above[part] = i < count ? above[part] - static_cast<Bits>(low) : 0;
            Bits all = above[part];
            for (int step = 16; step; step /= 2) all |= __shfl_xor_sync(ALL_LANES, all, step);
            width[part] = all ? 64 - __clzll(static_cast<long long>(all)) : 0;
        }
    }

    __device__ int bytes() const {
        int found = varint_bytes(zigzag(least)) + PARTS;
        for (int part = 0; part < parts; part++) found += PART / 8 * width[part];
        return found;
    }
};

template <typename Value, typename Bits>
__device__ void measure_blocks(
    const Value* __restrict__ values, const int64* __restrict__ starts, const int64* __restrict__ firsts, int pages, int* bytes, int64* smallest,
    int64* largest
) {
    const int64 blocks = firsts[pages], warps = static_cast<int64>(gridDim.x) * WARPS;
    for (int64 block = static_cast<int64>(blockIdx.x) * WARPS + threadIdx.x / 32; block < blocks; block += warps) {
        const int64 page = row_containing(firsts, pages, block), first = starts[page] + (block - firsts[page]) * BLOCK;
        Differences<Value, Bits> own;
        int64 low = values[first], high = low;
        own.read(values + first, starts[page + 1] - 1 - first, low, high);
        for (int step = 16; step; step /= 2) {
            low = min(low, static_cast<int64>(__shfl_xor_sync(ALL_LANES, low, step)));
            high = max(high, static_cast<int64>(__shfl_xor_sync(ALL_LANES, high, step)));
        }
        if (threadIdx.x & 31) continue;
        bytes[block] = own.bytes();
        atomicMin(smallest + page, low);
        atomicMax(largest + page, high);
    }
}

template <typename Value, typename Bits>
__device__ void pack_blocks(
    const Value* __restrict__ values, const int64* __restrict__ starts, const int64* __restrict__ firsts, int pages,
    const int64* __restrict__ heads, const int64* __restrict__ before, byte* __restrict__ content
) {
    __shared__ uint64 above[WARPS][PART];
    uint64* own_above = above[threadIdx.x / 32];
    const int lane = threadIdx.x & 31;
    const int64 blocks = firsts[pages], warps = static_cast<int64>(gridDim.x) * WARPS;
    for (int64 block = static_cast<int64>(blockIdx.x) * WARPS + threadIdx.x / 32; block < blocks; block += warps) {
        const int64 page = row_containing(firsts, pages, block), first = starts[page] + (block - firsts[page]) * BLOCK;
        Differences<Value, Bits> own;
        int64 low = 0, high = 0;
        own.read(values + first, starts[page + 1] - 1 - first, low, high);
        byte* target = content + heads[page + 1] + before[block];
        const int head = varint_bytes(zigzag(own.least));
        if (!lane) {
            put_varint(target, zigzag(own.least));
            for (int part = 0; part < PARTS; part++) target[head + part] = static_cast<byte>(own.width[part]);
        }
        target += head + PARTS;
        for (int part = 0; part < own.parts; part++) {
            const int width = own.width[part];
            own_above[lane] = own.above[part];
            __syncwarp();
            for (int word = lane; word < width; word += 32) {  // a word is 32 bits of the values, one after the other
                int value = 32 * word / width, got = value * width - 32 * word;  // bits of `value` before the word: -got
                uint64 bits = own_above[value] >> -got;
                for (got += width, value++; got < 32 && value < PART; got += width, value++) bits |= own_above[value] << got;
                for (int i = 0; i < 4; i++) target[4 * word + i] = static_cast<byte>(bits >> 8 * i);
            }
            __syncwarp();
            target += PART / 8 * width;
        }
    }
}

#define KERNELS(NAME, VALUE, BITS)                                                                                                     \
    extern "C" __global__ void begin_pages_##NAME(                                                                                     \
        const VALUE* values, const int64* starts, int pages, int* bytes, const int64* offsets, byte* content                          \
    ) {                                                                                                                                \
        begin(values, starts, pages, bytes, offsets, content);                                                                         \
    }                                                                                                                                  \
    extern "C" __global__ void measure_##NAME(                                                                                         \
        const VALUE* values, const int64* starts, const int64* firsts, int pages, int* bytes, int64* smallest, int64* largest         \
    ) {                                                                                                                                \
        measure_blocks<VALUE, BITS>(values, starts, firsts, pages, bytes, smallest, largest);                                          \
    }                                                                                                                                  \
    extern "C" __global__ void pack_##NAME(                                                                                            \
        const VALUE* values, const int64* starts, const int64* firsts, int pages, const int64* heads, const int64* before,            \
        byte* content                                                                                                                  \
    ) {                                                                                                                                \
        pack_blocks<VALUE, BITS>(values, starts, firsts, pages, heads, before, content);                                               \
    }

KERNELS(int32, int, uint32)
KERNELS(int64, int64, uint64)

// The product of two polynomials modulo POLYNOMIAL.
__device__ uint32 times(uint32 a, uint32 b) {
    uint32 product = 0;
    while (a) {
        if (a & ONE) product ^= b;
        a <<= 1;
        b = b >> 1 ^ (b & 1 ? POLYNOMIAL : 0);
    }
    return product;
}

// The CRC-32 of each page. Each thread computes that of a slice, which is moved to its place by powers of x.
extern "C" __global__ void check(const byte* __restrict__ content, const int64* __restrict__ offsets, uint32* checksums) {
    __shared__ uint32 table[256], power[POWERS], found;
    for (uint32 i = threadIdx.x; i < 256; i += blockDim.x) {
        uint32 value = i;
        for (int bit = 0; bit < 8; bit++) value = value >> 1 ^ (value & 1 ? POLYNOMIAL : 0);
        table[i] = value;
    }
    if (!threadIdx.x) {  // power[k] is x to the power of 8 · 2^k: it moves a checksum by 2^k bytes
        found = 0;
        power[0] = ONE >> 8;
        for (int k = 1; k < POWERS; k++) power[k] = times(power[k - 1], power[k - 1]);
    }
    __syncthreads();
    const int64 start = offsets[blockIdx.x], size = offsets[blockIdx.x + 1] - start;
    const int64 each = (size + blockDim.x - 1) / blockDim.x;
    const int64 from = min(each * threadIdx.x, size), to = min(from + each, size);
    if (from < to) {
        uint32 own = ~0u;
        for (int64 i = from; i < to; i++) own = own >> 8 ^ table[(own ^ content[start + i]) & 255];
        own = ~own;
        int64 after = size - to;
        for (int k = 0; after; k++, after >>= 1)
            if (after & 1) own = times(power[k], own);
        atomicXor(&found, own);
    }
    __syncthreads();
    if (!threadIdx.x) checksums[blockIdx.x] = found;
}
