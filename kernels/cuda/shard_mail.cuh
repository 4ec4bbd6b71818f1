// What shards tell each other: each is peeled by a kernel of its own, on one GPU or on several that write into each other's memory.
//
// A mailbox is one shard's memory that all shards, itself included, write into: posts [2][shards]; edges that leave
// [2][shards][most_edges], 8 bytes each, which every shard gets; messages about halves [2][shards][2 most_events], 16 bytes each. The
// two places of each take turns: who meets a second time has been met by all the first time, and they have read.
//
// meet     one barrier over the grids of all shards. Each posts to each other how much it wrote since the last meeting, and what all
//          must know. Mail is written before the post that counts it (a fence of the whole system between).
#pragma once
#include "common.cuh"

constexpr int MOST_SHARDS = 32;  // as MOST_PEERS in kernels/peers.py

// What one shard tells another at a meeting.
struct alignas(32) Post {
    uint32 edges;     // that leave
    uint32 messages;  // to this shard
    uint32 news;
    int least;
    uint32 turn;      // number of the meeting; written last
    uint32 unused[3];
};

constexpr uint32 SOME_TOLD = 1;  // some shard sends messages, or has not sent all
constexpr uint32 FEW_LEFT = 4;   // few enough are left to be numbered anew
constexpr uint32 QUIT = 8;       // time is up
constexpr uint32 LOST = 16;      // another shard does not come

constexpr uint32 NEVER = 0xFFFFFFFFu;  // turn of a shard that will not come any more

struct Message {
    uint32 low;
    uint32 high;
    int value;
    uint32 kind;
};

constexpr uint32 ALARM = 0, REPORT = 1, GRANT = 2;

// What was said at the last meeting.
struct Meeting {
    uint32 turn;
    uint32 news;
    int least;
    uint32 unused;
    uint32 edges[MOST_SHARDS];
    uint32 messages[MOST_SHARDS];
    uint32 out[MOST_SHARDS];  // messages written since
};

// As kernels/gpu/shards.py lays it out.
struct Mail {
    int64 rank;
    int64 shards;
    int64 patience;     // nanoseconds to wait for a shard
    int64 most_edges;   // of a shard in an exchange
    int64 most_events;  // likewise
    Meeting* meeting;
    char* const* boxes;  // [shards]
};

__device__ __forceinline__ Post* posts_of(const Mail& mail, int64 whose) {
    return reinterpret_cast<Post*>(mail.boxes[whose]);
}

__device__ __forceinline__ uint2* edges_of(const Mail& mail, int64 whose, uint32 turn, int64 sender) {
    char* begin = mail.boxes[whose] + 2 * mail.shards * sizeof(Post);
    return reinterpret_cast<uint2*>(begin) + ((turn & 1) * mail.shards + sender) * mail.most_edges;
}

__device__ __forceinline__ Message* messages_of(const Mail& mail, int64 whose, uint32 turn, int64 sender) {
    char* begin = mail.boxes[whose] + 2 * mail.shards * (sizeof(Post) + mail.most_edges * sizeof(uint2));
    return reinterpret_cast<Message*>(begin) + ((turn & 1) * mail.shards + sender) * 2 * mail.most_events;
}

__device__ __forceinline__ void send(const Mail& mail, uint32 turn, uint32 whom, const Message& message) {
    const uint32 lanes = __activemask(), same = __match_any_sync(lanes, whom);
    const int lane = threadIdx.x & 31, leader = __ffs(same) - 1;
    uint32 place = 0;
    if (lane == leader) place = atomicAdd(&mail.meeting->out[whom], static_cast<uint32>(__popc(same)));
    place = __shfl_sync(same, place, leader) + __popc(same & ((1u << lane) - 1));
    const uint4 packed = make_uint4(message.low, message.high, static_cast<uint32>(message.value), message.kind);
    *reinterpret_cast<uint4*>(messages_of(mail, whom, turn, mail.rank) + place) = packed;
}

// One thread posts to all shards, and waits for their posts; gives how many messages it has posted.
__device__ __noinline__ uint32 post(const Mail& mail, uint32 edges, uint32 news, int least) {
    Meeting& meeting = *mail.meeting;
    const int shards = static_cast<int>(mail.shards), rank = static_cast<int>(mail.rank);
    const uint32 turn = seen(&meeting.turn) + 1;
    const int slots = (turn & 1) * shards;
    uint32 sent = 0;
    for (int q = 0; q < shards; ++q) sent += seen(&meeting.out[q]);
    if (sent) news |= SOME_TOLD;
    for (int q = 0; q < shards; ++q) {
        volatile Post* to = posts_of(mail, q) + slots + rank;
        to->edges = edges;
        to->messages = seen(&meeting.out[q]);
        to->news = news;
        to->least = least;
        meeting.out[q] = 0;
    }
    __threadfence_system();
    for (int q = 0; q < shards; ++q) static_cast<volatile Post*>(posts_of(mail, q) + slots + rank)->turn = turn;
    const int64 begun = nanoseconds();
    for (int q = 0; q < shards; ++q) {
        volatile Post* from = posts_of(mail, rank) + slots + q;
        while (from->turn != turn && !(news & LOST)) {
            if (from->turn == NEVER || nanoseconds() - begun > mail.patience) news |= LOST;
        }
        if (news & LOST) break;
        __threadfence_system();
        news |= from->news;
        least = min(least, from->least);
        meeting.edges[q] = from->edges;
        meeting.messages[q] = from->messages;
    }
    meeting.news = news;
    meeting.least = least;
    meeting.turn = turn;
    return sent;
}

// What came with the last meeting, the same in all threads of a block.
struct Arrived {
    const uint2* box;  // edges of the first shard
    const uint32* until;  // [shards] how many edges there are of all shards up to each, in shared memory
    uint32 room;  // of each shard
    uint32 edges;
    uint32 news;
    int least;
};

// Reads the meeting. For all threads of a block.
__device__ __forceinline__ Arrived arrived(const Mail& mail, uint32 turn) {
    __shared__ uint32 until[MOST_SHARDS];
    __shared__ uint32 words[2];
    if (threadIdx.x == 0) {
        uint32 sum = 0;
        for (int q = 0; q < static_cast<int>(mail.shards); ++q) until[q] = sum += seen(&mail.meeting->edges[q]);
        words[0] = seen(&mail.meeting->news);
        words[1] = seen(reinterpret_cast<const uint32*>(&mail.meeting->least));
    }
    __syncthreads();
    const uint32 news = words[0], edges = news & LOST ? 0 : until[mail.shards - 1];
    return {edges_of(mail, mail.rank, turn, 0), until, static_cast<uint32>(mail.most_edges), edges, news, static_cast<int>(words[1])};
}

__device__ __forceinline__ uint2 leaving_edge(const Arrived& arrived, uint32 which) {
    uint32 sender = 0, before = 0;
    while (which >= arrived.until[sender]) before = arrived.until[sender++];
    return __ldcg(&arrived.box[static_cast<int64>(sender) * arrived.room + which - before]);
}
