// What shards tell each other: each is peeled by a kernel of its own, on one GPU or on several.
//
// A shard has an inbox that it reads: posts [2][shards]; edges that leave [2][shards][most_edges], 8 bytes each; messages about
// halves [2][shards][2 most_events], 16 bytes each. The two places of each take turns: who meets a second time has been met by all
// the first time, and they have read. Where a shard writes is in tables: into the others' inboxes, where GPUs reach each other's
// memory, or into memory of the host, from where a thread carries it to them; see kernels/gpu/shard_mail.py.
//
// meet     one barrier over the grids of all shards. Each posts to each other how much it wrote since the last meeting, and what all
//          must know. Mail is written before the post that counts it (a fence of the whole system between).
// Post     each number lies beside the turn that it is of, in 8 bytes that memory moves together: who sees the turn sees the number.
// Lost     the host's word, or a post of turn NEVER, ends the wait for a shard.
#pragma once
#include "common.cuh"

constexpr int MOST_SHARDS = 32;  // as MOST_PEERS in kernels/peers.py

#ifndef SYSTEM
#define SYSTEM 1  // 0: all shards are on one GPU
#endif

// What one shard tells another at a meeting: edges that leave, messages to the other, news, and the least count.
struct alignas(32) Post {
    unsigned long long word[4];  // each a number, and the turn above it
};

constexpr uint32 SOME_TOLD = 1;  // some shard sends messages
constexpr uint32 SOME_WAIT = 2;  // some shard has more to tell
constexpr uint32 FEW_LEFT = 4;   // few enough are left to be numbered anew
constexpr uint32 QUIT = 8;       // time is up
constexpr uint32 LOST = 16;      // another shard does not come
constexpr uint32 ENOUGH = 32;    // some shard has run enough rounds in this launch

constexpr uint32 LOOKS = 1024;  // for a post, before the host is asked whether its shard is lost

constexpr uint32 NEVER = 0xFFFFFFFFu;  // turn of a shard that will not come any more

struct Message {
    uint32 low;
    uint32 high;
    int value;
    uint32 kind;
};

constexpr uint32 ALARM = 0, REPORT = 1, GRANT = 2;

struct Meeting {
    uint32 turn;  // of the last one
    uint32 unused[7];
    uint32 out[MOST_SHARDS];  // messages written since
    Post said[MOST_SHARDS];   // what all blocks are to know: edges and messages of each shard, the news and the least count of all
};

// As kernels/gpu/shard_mail.py lays it out. Tables have the places of even turns, then those of odd ones.
struct Mail {
    int64 rank;
    int64 shards;
    int64 patience;     // nanoseconds to wait for a shard
    int64 most_edges;   // of a shard in an exchange
    int64 most_events;  // likewise, of halves that have something to tell
    int64 copies;       // of the edges that leave
    Meeting* meeting;
    char* inbox;
    Post* const* posts;        // [2][shards] to each shard
    uint2* const* edges;       // [2][copies]
    Message* const* messages;  // [2][shards] to each shard
    const uint32* lost;        // of the host: not 0 once it knows that another shard does not come
};

// Of the inbox.
__device__ __forceinline__ Post* posts_in(const Mail& mail, uint32 turn) {
    return reinterpret_cast<Post*>(mail.inbox) + (turn & 1) * mail.shards;
}

__device__ __forceinline__ uint2* edges_in(const Mail& mail, uint32 turn) {
    char* begin = mail.inbox + 2 * mail.shards * sizeof(Post);
    return reinterpret_cast<uint2*>(begin) + (turn & 1) * mail.shards * mail.most_edges;
}

__device__ __forceinline__ Message* messages_in(const Mail& mail, uint32 turn, int64 sender) {
    char* begin = mail.inbox + 2 * mail.shards * (sizeof(Post) + mail.most_edges * sizeof(uint2));
    return reinterpret_cast<Message*>(begin) + ((turn & 1) * mail.shards + sender) * 2 * mail.most_events;
}

__device__ __forceinline__ void send(const Mail& mail, uint32 turn, uint32 whom, const Message& message) {
    const uint32 lanes = __activemask(), same = __match_any_sync(lanes, whom);
    const int lane = threadIdx.x & 31, leader = __ffs(same) - 1;
    uint32 place = 0;
    if (lane == leader) place = atomicAdd(&mail.meeting->out[whom], static_cast<uint32>(__popc(same)));
    place = __shfl_sync(same, place, leader) + __popc(same & ((1u << lane) - 1));
    const uint4 packed = make_uint4(message.low, message.high, static_cast<uint32>(message.value), message.kind);
    *reinterpret_cast<uint4*>(mail.messages[(turn & 1) * mail.shards + whom] + place) = packed;
}

// Before what a thread writes next, all see what it, and those that it has heard of, have written.
__device__ __forceinline__ void fence_shards() {
#if SYSTEM
    asm volatile("fence.acq_rel.sys;" ::: "memory");
#else
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
#endif
}

__device__ __forceinline__ void fence_blocks() {
    asm volatile("fence.acq_rel.gpu;" ::: "memory");
}

__device__ __forceinline__ unsigned long long tagged(uint32 value, uint32 turn) {
    return static_cast<unsigned long long>(turn) << 32 | value;
}

__device__ __forceinline__ void write_post(Post* to, uint32 turn, uint32 edges, uint32 messages, uint32 news, int least) {
    const unsigned long long a = tagged(edges, turn), b = tagged(messages, turn), c = tagged(news, turn),
                             d = tagged(static_cast<uint32>(least), turn);
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to->word), "l"(a), "l"(b) : "memory");
    asm volatile("st.volatile.global.v2.u64 [%0], {%1, %2};" ::"l"(to->word + 2), "l"(c), "l"(d) : "memory");
}

__device__ __forceinline__ void read_post(const Post* from, unsigned long long (&word)[4]) {
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(word[0]), "=l"(word[1]) : "l"(from->word) : "memory");
    asm volatile("ld.volatile.global.v2.u64 {%0, %1}, [%2];" : "=l"(word[2]), "=l"(word[3]) : "l"(from->word + 2) : "memory");
}

__device__ __forceinline__ bool all_of(const unsigned long long (&word)[4], uint32 turn) {
    return word[0] >> 32 == turn && word[1] >> 32 == turn && word[2] >> 32 == turn && word[3] >> 32 == turn;
}

__device__ __forceinline__ bool any_never(const unsigned long long (&word)[4]) {
    return word[0] >> 32 == NEVER || word[1] >> 32 == NEVER || word[2] >> 32 == NEVER || word[3] >> 32 == NEVER;
}

// One warp posts to all shards, a lane each.
__device__ __forceinline__ void write_posts(const Mail& mail, uint32 turn, uint32 edges, uint32 messages, uint32 news, int least) {
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    if (lane >= shards) return;
    write_post(mail.posts[(turn & 1) * shards + lane], turn, edges, messages, news, least);
}

// It waits for the posts of all, and tells all blocks.
__device__ __forceinline__ void spread_posts(const Mail& mail, uint32 turn) {
    Meeting& meeting = *mail.meeting;
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    uint32 news = 0;
    int least = 0x7FFFFFFF;
    unsigned long long word[4] = {0, 0, 0, 0};
    if (lane < shards) {
        const Post* from = posts_in(mail, turn) + lane;
        const int64 begun = nanoseconds();
        read_post(from, word);
        for (uint32 looks = 1; !all_of(word, turn); ++looks) {
            const bool asked = looks % LOOKS == 0;
            if (any_never(word) || (asked && (seen(mail.lost) || nanoseconds() - begun > mail.patience))) {
                news = LOST;
                break;
            }
            read_post(from, word);
        }
        fence_shards();
        news |= static_cast<uint32>(word[2]);
        least = static_cast<int>(static_cast<uint32>(word[3]));
    }
    __syncwarp();
    news = warp_or(news);
    least = warp_min(least);
    if (lane < shards) {
        write_post(&meeting.said[lane], turn, static_cast<uint32>(word[0]), static_cast<uint32>(word[1]), news, least);
    }
}

// What came with a meeting. The arrays are in shared memory, by sender.
struct Arrived {
    const uint2* box;        // edges of the first shard
    const uint32* until;     // how many edges there are of all shards up to each
    const uint32* messages;
    uint32 room;             // for edges of each shard
    uint32 edges;
    uint32 news;
    int least;
};

// The first warp of a block waits until all is known.
__device__ __forceinline__ void hear(
    const Mail& mail, uint32 turn, Arrived& came, uint32* until, uint32* messages, uint32& own) {
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    unsigned long long word[4] = {0, 0, 0, 0};
    if (lane < shards) {
        do {
            read_post(&mail.meeting->said[lane], word);
        } while (!all_of(word, turn));
    }
    fence_blocks();
    __syncwarp();
    const uint32 edges = static_cast<uint32>(word[0]), sum = sum_up_to(edges);
    const uint32 news = __shfl_sync(ALL_LANES, static_cast<uint32>(word[2]), 0);
    const uint32 least = __shfl_sync(ALL_LANES, static_cast<uint32>(word[3]), 0);
    if (lane < shards) {
        until[lane] = sum;
        messages[lane] = static_cast<uint32>(word[1]);
    }
    own = __shfl_sync(ALL_LANES, edges, static_cast<int>(mail.rank));
    if (lane == 31) {
        came = {edges_in(mail, turn), until, messages, static_cast<uint32>(mail.most_edges),
                news & LOST ? 0 : sum, news, static_cast<int>(least)};
    }
}

__device__ __forceinline__ uint2 leaving_edge(const Arrived& arrived, uint32 which) {
    uint32 sender = 0, before = 0;
    while (which >= arrived.until[sender]) before = arrived.until[sender++];
    return __ldcg(&arrived.box[static_cast<int64>(sender) * arrived.room + which - before]);
}

// The way of one block through the barriers of its grid. The counter is never set back.
struct Gate {
    uint32* arrived;
    uint32 awaited;
};

// Every block of the grid waits for all others.
__device__ __forceinline__ void pass(Gate& gate) {
    __syncthreads();
    if (threadIdx.x == 0) {
        gate.awaited += gridDim.x;
        fence_blocks();
        atomicAdd(gate.arrived, 1u);
        while (static_cast<int>(seen(gate.arrived) - gate.awaited) < 0) {
        }
        fence_blocks();
    }
    __syncthreads();
}
