// The mail between shards. Each shard is peeled by a kernel of its own, on one GPU or on several.
//
// A shard reads from its inbox: posts [2][shards]; removed edges [2][shards][max_edges], 8 bytes each; messages about
// halves [2][shards][2 max_events], 16 bytes each. Meetings use the two halves of each array in turn: when a shard
// reaches the next meeting, all shards have reached this meeting, and so have read the mail of the meeting before it.
// Tables contain the addresses to which a shard writes: the inboxes of the other shards, if GPUs can access each
// other's memory, or host memory, from which a host thread carries the mail; see kernels/gpu/shards/mail.py.
//
// meet     A barrier over the grids of all shards. Each shard posts to each other shard how much it has written since
//          the last meeting, and what all must know. Mail is written before the post that counts it, with a fence
//          between.
// Post     Each number is stored with its turn in 8 bytes that memory transfers together: a reader that sees the turn sees the
//          number.
// Failure  The host's flag, or a post with turn NEVER, ends the wait for a shard.
#pragma once
#include "common.cuh"

#ifndef SYSTEM
#define SYSTEM 1  // 1: shards are on several GPUs; 0: all are on this GPU
#endif

// What one shard tells another at a meeting: the number of removed edges, the number of messages, news, and the least count.
struct alignas(32) Post {
    unsigned long long word[4];  // each is a number, with the turn in the upper half
};

constexpr uint32 HAS_MESSAGES = 1;  // a shard sends messages
constexpr uint32 HAS_BACKLOG = 2;  // a shard has events for the next exchange
constexpr uint32 FEW_LEFT = 4;  // so few halves remain that they are to be renumbered
constexpr uint32 QUIT = NEWS_QUIT;  // time is up
constexpr uint32 LOST = NEWS_LOST;  // another shard has failed
constexpr uint32 ROUNDS_DONE = 32;  // a shard has run the rounds of its launch

constexpr uint32 CHECKS = 1024;  // checks for a post between two reads of the host's flag

constexpr uint32 NEVER = TURN_NEVER;  // turn in the posts of a shard that will not send again

struct Message {
    uint32 low;
    uint32 high;
    int value;
    uint32 kind;
};

constexpr uint32 ALARM = 0, REPORT = 1, GRANT = 2;

struct Meeting {
    uint32 turn;  // number of the last meeting
    uint32 unused[7];
    uint32 out[MAX_SHARDS];  // number of messages written to each shard since the last meeting
    Post collected[MAX_SHARDS];  // for all blocks: edges and messages of each shard, news and least count of all
};

// In the layout of kernels/gpu/shards/peel.py. Tables contain the addresses for even turns, then those for odd turns.
struct Mail {
    int64 rank;
    int64 shards;
    int64 patience;  // nanoseconds to wait for a shard
    int64 max_edges;  // most edges of a shard in an exchange
    int64 max_events;  // most events of a shard in an exchange
    int64 copies;  // number of addresses to which removed edges are written
    Meeting* meeting;
    char* inbox;
    Post* const* posts;  // [2][shards] to each shard
    uint2* const* edges;  // [2][copies]
    Message* const* messages;  // [2][shards] to each shard
    const uint32* lost;  // the host's flag: not 0 after another shard has failed
};

// The arrays of the inbox.
__device__ __forceinline__ Post* posts_in(const Mail& mail, uint32 turn) {
    return reinterpret_cast<Post*>(mail.inbox) + (turn & 1) * mail.shards;
}

__device__ __forceinline__ uint2* edges_in(const Mail& mail, uint32 turn) {
    char* begin = mail.inbox + 2 * mail.shards * sizeof(Post);
    return reinterpret_cast<uint2*>(begin) + (turn & 1) * mail.shards * mail.max_edges;
}

__device__ __forceinline__ Message* messages_in(const Mail& mail, uint32 turn, int64 sender) {
    char* begin = mail.inbox + 2 * mail.shards * (sizeof(Post) + mail.max_edges * sizeof(uint2));
    return reinterpret_cast<Message*>(begin) + ((turn & 1) * mail.shards + sender) * 2 * mail.max_events;
}

__device__ __forceinline__ void send(const Mail& mail, uint32 turn, uint32 receiver, const Message& message) {
    const uint32 lanes = __activemask(), same = __match_any_sync(lanes, receiver);
    const int lane = threadIdx.x & 31, leader = __ffs(same) - 1;
    uint32 slot = 0;
    if (lane == leader) slot = atomicAdd(&mail.meeting->out[receiver], static_cast<uint32>(__popc(same)));
    slot = __shfl_sync(same, slot, leader) + __popc(same & ((1u << lane) - 1));
    const uint4 packed = make_uint4(message.low, message.high, static_cast<uint32>(message.value), message.kind);
    *reinterpret_cast<uint4*>(mail.messages[(turn & 1) * mail.shards + receiver] + slot) = packed;
}

// Makes all earlier writes of this thread, and those that it has observed, visible before its later writes.
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

__device__ __forceinline__ bool all_have_turn(const unsigned long long (&word)[4], uint32 turn) {
    return word[0] >> 32 == turn && word[1] >> 32 == turn && word[2] >> 32 == turn && word[3] >> 32 == turn;
}

__device__ __forceinline__ bool any_is_never(const unsigned long long (&word)[4]) {
    return word[0] >> 32 == NEVER || word[1] >> 32 == NEVER || word[2] >> 32 == NEVER || word[3] >> 32 == NEVER;
}

// A warp posts to all shards, one lane each.
__device__ __forceinline__ void write_posts(const Mail& mail, uint32 turn, uint32 edges, uint32 messages, uint32 news, int least) {
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    if (lane >= shards) return;
    write_post(mail.posts[(turn & 1) * shards + lane], turn, edges, messages, news, least);
}

// The warp waits for the posts of all shards and stores them for all blocks.
__device__ __forceinline__ void collect_posts(const Mail& mail, uint32 turn) {
    Meeting& meeting = *mail.meeting;
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    uint32 news = 0;
    int least = 0x7FFFFFFF;
    unsigned long long word[4] = {0, 0, 0, 0};
    if (lane < shards) {
        const Post* from = posts_in(mail, turn) + lane;
        const int64 begun = nanoseconds();
        read_post(from, word);
        for (uint32 checks = 1; !all_have_turn(word, turn); ++checks) {
            const bool asked = checks % CHECKS == 0;
            if (any_is_never(word) || (asked && (seen(mail.lost) || nanoseconds() - begun > mail.patience))) {
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
        write_post(&meeting.collected[lane], turn, static_cast<uint32>(word[0]), static_cast<uint32>(word[1]), news, least);
    }
}

// The mail that a meeting has brought. The arrays are in shared memory, by sender.
struct Received {
    const uint2* box;  // edges of the first shard, then of the others
    const uint32* until;  // prefix sums of the numbers of edges
    const uint32* messages;
    uint32 room;  // capacity for edges of each shard
    uint32 edges;
    uint32 news;
    int least;
};

// The first warp of a block waits until the posts of all shards are stored.
__device__ __forceinline__ void await_posts(
    const Mail& mail, uint32 turn, Received& received, uint32* until, uint32* messages, uint32& own) {
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    unsigned long long word[4] = {0, 0, 0, 0};
    if (lane < shards) {
        do {
            read_post(&mail.meeting->collected[lane], word);
        } while (!all_have_turn(word, turn));
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
        received = {edges_in(mail, turn), until, messages, static_cast<uint32>(mail.max_edges),
                news & LOST ? 0 : sum, news, static_cast<int>(least)};
    }
}

__device__ __forceinline__ uint2 received_edge(const Received& arrived, uint32 which) {
    uint32 sender = 0, before = 0;
    while (which >= arrived.until[sender]) before = arrived.until[sender++];
    return __ldcg(&arrived.box[static_cast<int64>(sender) * arrived.room + which - before]);
}

// The barrier of a grid, as one block uses it. The counter is never reset.
struct GridBarrier {
    uint32* arrived;
    uint32 awaited;
};

// Each block of the grid waits for all others.
__device__ __forceinline__ void pass_barrier(GridBarrier& grid) {
    __syncthreads();
    if (threadIdx.x == 0) {
        grid.awaited += gridDim.x;
        fence_blocks();
        atomicAdd(grid.arrived, 1u);
        while (static_cast<int>(seen(grid.arrived) - grid.awaited) < 0) {
        }
        fence_blocks();
    }
    __syncthreads();
}
