// Subgraphs that are peeled in step: each by a kernel of its own, on one GPU or on several that write into each other's memory.
//
// An edge falls at its owner. Before the round in which it does, the owner puts it into the inbox of every peer that holds it as
// a ghost, and the peer lets the ghost join its own frontier. So all peers run the same rounds, and each edge falls in the round
// in which it would if the graph were peeled in one piece.
//
// meet     one barrier over the grids of all peers. Each posts to each other how much it has sent so far, and what all must know.
// Writes   into a peer's memory: 4 bytes for each edge that it holds as a ghost, and 16 bytes a meeting. Reads only its own.
// Order    inboxes are written before the post that counts them (a fence of the whole system between). A post has two places that
//          take turns: who meets a second time has been met by all the first time, and they have read.
#pragma once
#include "common.cuh"

constexpr int MOST_PEERS = 32;  // as in kernels/peers.py

// What one peer tells another.
struct Post {
    uint32 sent;  // edges put into the other's inbox until now
    uint32 news;
    int least;
    uint32 turn;  // number of the meeting; written last
};

constexpr uint32 SOME_FALL = 1;     // edges have joined a frontier
constexpr uint32 SOME_LEFT = 2;     // edges are left
constexpr uint32 FEW_LEFT = 4;   // few enough are left to be numbered anew
constexpr uint32 QUIT = 8;     // time is up
constexpr uint32 LOST = 16;    // a peer does not come

constexpr uint32 NEVER = 0xFFFFFFFFu;  // turn of a peer that will not come any more

// What has been said at the last meeting, and which part of the inbox came with it.
struct Meeting {
    uint32 turn;
    uint32 news;
    int least;
    uint32 unused;
    uint32 sent[MOST_PEERS];
    uint32 from[MOST_PEERS];
    uint32 until[MOST_PEERS];
};

// As kernels/gpu/peers.py lays it out.
struct Peers {
    int64 rank;
    int64 count;
    int64 patience;              // nanoseconds to wait for a peer
    Meeting* meeting;
    Post* const* posts;          // [count] where each peer reads what others post: [2][count]
    int* const* inbox;           // [count] where each peer reads what this one sends
    const int* const* received;  // [count] where this one reads what each peer sends
    const int* const* ghost;     // [count] the edges that each peer sends, in its order
    const uint32* start;         // [edges at the start + 1] subscriptions of each edge
    const int2* subscription;    // a peer, and which of the ghosts it has from here the edge is
    const int* origin;           // [edges] number of each edge at the start; null for the same
};

struct Met {
    uint32 news;
    int least;
};

// One thread posts to all peers, and waits for their posts.
__device__ __noinline__ void post(const Peers& peers, uint32 news, int least) {
    Meeting& meeting = *peers.meeting;
    const int count = static_cast<int>(peers.count), rank = static_cast<int>(peers.rank);
    const uint32 turn = seen(&meeting.turn) + 1;
    const int slots = (turn & 1) * count;
    for (int q = 0; q < count; ++q) {
        if (q == rank) continue;
        volatile Post* to = peers.posts[q] + slots + rank;
        to->sent = seen(&meeting.sent[q]);
        to->news = news;
        to->least = least;
    }
    __threadfence_system();
    for (int q = 0; q < count; ++q) {
        if (q != rank) static_cast<volatile Post*>(peers.posts[q] + slots + rank)->turn = turn;
    }
    const int64 begun = nanoseconds();
    for (int q = 0; q < count; ++q) {
        if (q == rank) continue;
        volatile Post* from = peers.posts[rank] + slots + q;
        while (from->turn != turn && !(news & LOST)) {
            if (from->turn == NEVER || nanoseconds() - begun > peers.patience) news |= LOST;
        }
        __threadfence_system();
        if (news & LOST) break;
        news |= from->news;
        least = min(least, from->least);
        meeting.from[q] = seen(&meeting.until[q]);
        meeting.until[q] = from->sent;
    }
    meeting.news = news;
    meeting.least = least;
    meeting.turn = turn;
}

// Every block of every peer waits for all others; gives what any of them has to tell, and the least of all.
__device__ __forceinline__ Met meet(Barrier* barrier, const Peers& peers, uint32 news, int least) {
    __shared__ Met met;
    __syncthreads();
    if (threadIdx.x == 0) {
        volatile Barrier* shared = barrier;
        const uint32 turn = shared->turn;
        __threadfence_system();
        if (atomicAdd(&barrier->arrived, 1u) == gridDim.x - 1) {
            __threadfence_system();
            shared->arrived = 0;
            post(peers, news, least);
            __threadfence();
            shared->turn = turn + 1;
        } else {
            while (shared->turn == turn) {
            }
        }
        __threadfence();
        met.news = seen(&peers.meeting->news);
        met.least = static_cast<int>(seen(reinterpret_cast<const uint32*>(&peers.meeting->least)));
    }
    __syncthreads();
    return met;
}

// The edges queue[from .. to), which fall next and are owned here, go to all who hold them as ghosts.
__device__ __forceinline__ void send(const Peers& peers, const int* queue, uint32 from, uint32 to) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    for (uint32 i = from + thread; i < to; i += threads) {
        const int edge = __ldcg(&queue[i]);
        const int first = peers.origin ? peers.origin[edge] : edge;
        for (uint32 at = peers.start[first], stop = peers.start[first + 1]; at < stop; ++at) {
            const int2 to_whom = peers.subscription[at];
            const uint32 lanes = __activemask(), same = __match_any_sync(lanes, to_whom.x);
            const int lane = threadIdx.x & 31, leader = __ffs(same) - 1;
            uint32 place = 0;
            if (lane == leader) place = atomicAdd(&peers.meeting->sent[to_whom.x], static_cast<uint32>(__popc(same)));
            place = __shfl_sync(same, place, leader) + __popc(same & ((1u << lane) - 1));
            peers.inbox[to_whom.x][place] = to_whom.y;
        }
    }
}

// What has come with the last meeting joins the frontier, which ends at `end`, by the count `code`; gives its new end.
__device__ __forceinline__ uint32 receive(
    const Peers& peers, Barrier* barrier, int* queue, uint32* tail, int* count, uint32 end, int code) {
    const uint32 thread = blockIdx.x * blockDim.x + threadIdx.x, threads = gridDim.x * blockDim.x;
    const uint32 before = end;
    for (int q = 0; q < static_cast<int>(peers.count); ++q) {
        if (q == static_cast<int>(peers.rank)) continue;
        const uint32 from = __ldcg(&peers.meeting->from[q]), size = __ldcg(&peers.meeting->until[q]) - from;
        for (uint32 i = thread; i < size; i += threads) {
            const int edge = peers.ghost[q][__ldcg(&peers.received[q][from + i])];
            count[edge] = code;
            queue[end + i] = edge;
        }
        end += size;
    }
    if (end == before) return end;
    if (thread == 0) *tail = end;
    return grid_barrier(barrier, tail);
}
