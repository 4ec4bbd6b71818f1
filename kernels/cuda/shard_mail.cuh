// What shards tell each other: each is peeled by a kernel of its own, on one GPU or on several.
//
// A shard has an inbox that it reads: posts [2][shards]; edges that leave [2][shards][most_edges], 8 bytes each; messages about
// halves [2][shards][2 most_events], 16 bytes each. The two places of each take turns: who meets a second time has been met by all
// the first time, and they have read. Where a shard writes is in tables: into the others' inboxes, where GPUs reach each other's
// memory, or into memory of the host, from where a thread carries it to them; see kernels/gpu/shard_mail.py.
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

// One warp posts to all shards, a lane each, and waits for their posts; gives how many messages it has posted.
__device__ __noinline__ uint32 post(const Mail& mail, uint32 edges, uint32 news, int least) {
    Meeting& meeting = *mail.meeting;
    const uint32 shards = static_cast<uint32>(mail.shards), lane = threadIdx.x & 31;
    const uint32 turn = seen(&meeting.turn) + 1;
    const uint32 messages = lane < shards ? seen(&meeting.out[lane]) : 0;
    const uint32 sent = static_cast<uint32>(warp_sum(static_cast<int>(messages)));
    if (sent) news |= SOME_TOLD;
    if (lane < shards) {
        Post* to = mail.posts[(turn & 1) * shards + lane];
        __stcg(reinterpret_cast<uint4*>(to), make_uint4(edges, messages, news, static_cast<uint32>(least)));
        meeting.out[lane] = 0;
        __threadfence_system();
        static_cast<volatile Post*>(to)->turn = turn;
        const Post* from = posts_in(mail, turn) + lane;
        const int64 begun = nanoseconds();
        while (seen(&from->turn) != turn) {
            if (seen(&from->turn) == NEVER || nanoseconds() - begun > mail.patience) {
                news |= LOST;
                break;
            }
        }
        __threadfence_system();
        const uint4 theirs = __ldcg(reinterpret_cast<const uint4*>(from));
        meeting.edges[lane] = theirs.x;
        meeting.messages[lane] = theirs.y;
        news |= theirs.z;
        least = min(least, static_cast<int>(theirs.w));
    }
    __syncwarp();
    news = warp_or(news);
    least = warp_min(least);
    if (lane == 0) {
        meeting.news = news;
        meeting.least = least;
        meeting.turn = turn;
    }
    return sent;
}

// What came with the last meeting.
struct Arrived {
    const uint2* box;  // edges of the first shard
    const uint32* until;  // [shards] how many edges there are of all shards up to each, in shared memory
    uint32 room;  // of each shard
    uint32 edges;
    uint32 news;
    int least;
};

// Reads the meeting. For all threads of a block, which share what it gives until they read the next one.
__device__ __forceinline__ const Arrived& arrived(const Mail& mail, uint32 turn) {
    __shared__ uint32 until[MOST_SHARDS];
    __shared__ Arrived came;
    const uint32 shards = static_cast<uint32>(mail.shards);
    if (threadIdx.x < 32) {
        uint32 sum = threadIdx.x < shards ? seen(&mail.meeting->edges[threadIdx.x]) : 0;
        const uint32 news = seen(&mail.meeting->news), least = seen(reinterpret_cast<const uint32*>(&mail.meeting->least));
        sum = sum_up_to(sum);
        if (threadIdx.x < shards) until[threadIdx.x] = sum;
        if (threadIdx.x == 31) {
            const uint2* box = edges_in(mail, turn);
            came = {box, until, static_cast<uint32>(mail.most_edges), news & LOST ? 0 : sum, news, static_cast<int>(least)};
        }
    }
    __syncthreads();
    return came;
}

__device__ __forceinline__ uint2 leaving_edge(const Arrived& arrived, uint32 which) {
    uint32 sender = 0, before = 0;
    while (which >= arrived.until[sender]) before = arrived.until[sender++];
    return __ldcg(&arrived.box[static_cast<int64>(sender) * arrived.room + which - before]);
}
