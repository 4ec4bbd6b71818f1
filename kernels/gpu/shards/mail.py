"""The mail between shards: memory into which the kernel of a shard writes for other shards, and from which it reads.

Mail is in one of three places: in the memory of GPUs that access each other's memory (`DirectMail`); in host memory
that all processes map, which kernels write and read without a host thread (`HostMail`); or in host memory of each
process, between which host threads carry the words (`RelayedMail`). shards/mail.cuh has the layout.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress
from threading import Event
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ...cpu.arrays.shared_words import spin_until_at_least, store_release, store_release_longs
from ...gpu_shards import Address
from ..runtime.constants import NEVER
from .shared_memory import Links, Mailbox

MAX_EDGES = 2**22
"""Maximum number of edges that one shard removes in one exchange. Further edges wait for the next exchange."""
MAX_EVENTS = 2**20
"""Maximum number of halves with an event that one shard handles in one exchange."""
MAX_RELAYED_EDGES = 2**20
"""As `MAX_EDGES`, where the host carries the mail: 32 MiB of host memory for each shard, and as much for sending."""

MAX_RELAYED_EVENTS = 2**18
"""As `MAX_EVENTS`, where the host carries the mail."""
HEADER = 4
"""Words of the header before the edges that a shard sends through the host."""
POST_WORDS, _EDGE_WORDS, _MESSAGE_WORDS = 8, 2, 4
"""32-bit words of a post, of an edge and of a message.

A post has four numbers: edges, messages, news, least count. Each is followed by the number of its turn.
"""
_CHECKS = 300
"""Number of checks for a post, about 10 µs, before the thread yields the core."""
_YIELDS = 100
"""Number of yields before the thread sleeps between checks."""
_SLEEP_SECONDS = 5e-5

Words = NDArray[np.uint32]


class ShardMailbox(Mailbox):
    """GPU memory of a shard into which the other shards write removed edges and messages about halves."""

    def __init__(self, shards: int, edges: int, max_edges: int = MAX_EDGES, max_events: int = MAX_EVENTS) -> None:
        # The capacity is equal on all shards of a run, as `edges` is the number of edges of the whole graph.
        self.max_edges, self.max_events = max(1, min(edges, max_edges)), max(1, min(edges, max_events))
        never = np.array([0, NEVER] * 4, np.uint32)
        each = _EDGE_WORDS * self.max_edges + 2 * _MESSAGE_WORDS * self.max_events
        super().__init__(shards, never, 2 * shards * 4 * each)


class DirectMail(Links):
    """Mail of a shard whose kernel writes into the mailboxes of the other shards, on this GPU or on GPUs it can access.

    `rank` is the number of the shard, `mailbox` its own mailbox, and `addresses` the addresses of the mailboxes of all
    shards by rank. `abandon()` tells the other shards to stop waiting for this shard, `mark_peer_lost()` ends this
    shard's kernel, `close()` closes the other shards' memory. Raises ConnectionError if a mailbox cannot be reached.
    """

    mailbox: ShardMailbox
    reserved_processors = 0
    """As in `RelayedMail`."""

    def __init__(self, rank: int, mailbox: ShardMailbox, addresses: Sequence[Address]) -> None:
        super().__init__(rank, mailbox, addresses)
        self.peer_lost = peer_lost_flag()
        self.max_edges, self.max_events = mailbox.max_edges, mailbox.max_events

    @property
    def shards(self) -> int:
        """Number of shards of the graph."""
        return len(self.pointers)

    @property
    def on_one_device(self) -> bool:
        """Whether this GPU peels all of several shards, so that no other device reads what a shard writes."""
        return 1 < self.here == self.shards  # a single shard runs the same kernel as beside other GPUs

    @property
    def inbox(self) -> int:
        """Address of this shard's mailbox."""
        return self.pointers[self.rank]

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Addresses to which the shard writes posts, edges, messages: [2, shards], by parity of turn and receiver."""
        return send_tables(self.pointers, self.rank, self.max_edges, self.max_events)

    def mark_peer_lost(self) -> None:
        """Tell this shard's kernel that another shard has failed, so that it stops waiting and ends."""
        store_release(self.peer_lost, 0, 1)


class RelayedMail:
    """Mail of a shard in host memory that a host thread carries to the other shards.

    For each meeting the thread calls `await_post` and `outgoing`, and `deliver` once for each other shard. `edges` is
    the number of edges of the whole graph, `here` the number of shards whose kernels run on this GPU at the same time.
    Raises MemoryError.
    """

    on_one_device = False
    """As in `DirectMail`: the host reads what the kernel writes."""

    def __init__(
        self,
        rank: int,
        shards: int,
        edges: int,
        here: int,
        max_edges: int = MAX_RELAYED_EDGES,
        max_events: int = MAX_RELAYED_EVENTS,
    ) -> None:
        self.rank, self.shards, self.here = rank, shards, here
        self.reserved_processors = 0
        """Number of multiprocessors that the kernel leaves free for kernels that must run while it waits."""
        self.max_edges, self.max_events = max(1, min(edges, max_edges)), max(1, min(edges, max_events))
        posts, messages = 2 * shards * POST_WORDS, 4 * shards * self.max_events * _MESSAGE_WORDS
        sent = HEADER + self.max_edges * _EDGE_WORDS
        self._memory = _pinned(posts + 2 * shards * self.max_edges * _EDGE_WORDS + messages)
        self._staged = _pinned(posts + 2 * sent + messages)
        self._posts: Words = self._staged[:posts]
        self._edges: NDArray[np.uint32] = self._staged[posts : posts + 2 * sent].reshape(2, sent)
        self._messages: NDArray[np.uint32] = self._staged[posts + 2 * sent :].reshape(2, shards, -1)
        self._inbox_edges: NDArray[np.uint32] = self._memory[
            posts : posts + 2 * shards * self.max_edges * _EDGE_WORDS
        ].reshape(2, shards, -1)
        self._inbox_messages: NDArray[np.uint32] = self._memory[len(self._memory) - messages :].reshape(2, shards, -1)
        self._inbox_posts = self._memory[:posts].view(np.uint64)
        self._others = [q for q in range(shards) if q != rank]
        self._memory[:posts] = self._posts[:] = 0
        self.peer_lost = peer_lost_flag()

    @property
    def max_common_words(self) -> int:
        """Maximum number of words in the first result of `outgoing`, which are for all other shards."""
        return HEADER + _EDGE_WORDS * self.max_edges

    @property
    def max_own_words(self) -> int:
        """Maximum number of words of `outgoing` for one other shard alone."""
        return 2 * _MESSAGE_WORDS * self.max_events

    @property
    def inbox(self) -> int:
        """Address of this shard's inbox."""
        return int(self._memory.ctypes.data)

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Addresses as in `DirectMail` for posts and messages. Those for edges are [2, 2] by parity of turn: this
        shard's own inbox, and the memory from which the host thread sends.
        """
        own = [kind[:, self.rank] for kind in _inbox_tables(self.inbox, self.shards, self.max_edges, self.max_events)]
        slot = np.arange(2 * self.shards, dtype=np.uint64).reshape(2, self.shards)
        posts = np.uint64(self._posts.ctypes.data) + slot * np.uint64(4 * POST_WORDS)
        messages = np.uint64(self._messages.ctypes.data) + slot * np.uint64(self._messages[0, 0].nbytes)
        posts[:, self.rank], messages[:, self.rank] = own[0], own[2]
        sent = [self._edges[turn].ctypes.data + 4 * HEADER for turn in (0, 1)]
        edges = np.array([own[1], sent], np.uint64).T
        return posts, np.ascontiguousarray(edges[:, : 1 + bool(self._others)]), messages

    def await_post(self, turn: int, ended: Event) -> bool:
        """Wait until the kernel has posted its mail of meeting `turn`, at least 1. Returns False if `ended` is set."""
        for q in self._others:
            yields = 0
            for at in range(self._slot(turn, q) + 1, self._slot(turn, q) + POST_WORDS, 2):
                while spin_until_at_least(self._posts, at, turn, _CHECKS) < turn:
                    if ended.is_set():
                        return False
                    yields += 1
                    if yields > _YIELDS:
                        time.sleep(_SLEEP_SECONDS)
        return True

    def outgoing(self, turn: int) -> tuple[Words, list[Words]]:
        """The words that the kernel wrote: the words for all other shards, and a list [shards] of the words for each.

        They are valid until the second meeting after this meeting.
        """
        side = turn & 1
        common = self._edges[side, :HEADER]
        common[:] = 0
        own = [self._messages[side, q, :0] for q in range(self.shards)]
        for q in self._others:
            at = self._slot(turn, q)
            edges, messages, common[1], common[2] = self._posts[at : at + POST_WORDS : 2].tolist()
            common[0] = edges
            own[q] = self._messages[side, q, : messages * _MESSAGE_WORDS]
        return self._edges[side, : HEADER + _EDGE_WORDS * int(common[0])], own

    def deliver(self, turn: int, sender: int, common: Words, own: Words) -> None:
        """Pass the `outgoing` words of another shard to the kernel. Raises ValueError if their sizes do not fit."""
        edges, news, least = _counts(common)
        messages = len(own) // _MESSAGE_WORDS
        if len(common) != HEADER + _EDGE_WORDS * edges or edges > self.max_edges or messages > 2 * self.max_events:
            raise ValueError(f"a packet with {len(common)} and {len(own)} words does not fit {edges} edges")
        side = turn & 1
        self._inbox_edges[side, sender, : _EDGE_WORDS * edges] = common[HEADER:]
        self._inbox_messages[side, sender, : len(own)] = own
        post = np.array([edges, messages, news, least], np.uint64) | np.uint64(turn << 32)
        store_release_longs(self._inbox_posts, self._slot(turn, sender) // 2, post)

    def mark_peer_lost(self) -> None:
        store_release(self.peer_lost, 0, 1)

    def abandon(self) -> None:
        """Does nothing: the thread that carries the mail tells the other shards."""

    def close(self) -> None:
        """Free the memory."""
        self._memory = self._staged = self._posts = _NOTHING
        self._inbox_posts = np.empty(0, np.uint64)
        self._edges = self._inbox_edges = self._messages = self._inbox_messages = _NOTHING

    def _slot(self, turn: int, shard: int) -> int:
        return ((turn & 1) * self.shards + shard) * POST_WORDS


_NOTHING = np.empty(0, np.uint32)


def _counts(common: Words) -> tuple[int, int, int]:
    if len(common) < HEADER:
        raise ValueError(f"a packet with {len(common)} words is shorter than its header")
    edges, news, least, _ = common[:HEADER].tolist()
    return edges, news, least


def inbox_words(shards: int, max_edges: int, max_events: int) -> int:
    """Size of an inbox in 32-bit words."""
    return 2 * shards * (POST_WORDS + _EDGE_WORDS * max_edges + 2 * _MESSAGE_WORDS * max_events)


def send_tables(
    inboxes: Sequence[int], rank: int, max_edges: int, max_events: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses to which shard `rank` writes posts, edges, messages: [2, shards] each, by parity of turn and receiver.

    `inboxes` [shards] are the start addresses of all inboxes.
    """
    found = [_inbox_tables(begin, len(inboxes), max_edges, max_events) for begin in inboxes]
    posts, edges, messages = (
        np.ascontiguousarray(np.array([tables[kind][:, rank] for tables in found]).T) for kind in range(3)
    )
    return posts, edges, messages


def _inbox_tables(
    begin: int, shards: int, max_edges: int, max_events: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses of the posts, edges and messages of an inbox: [2, shards] each, by parity of turn and sender."""
    slot = np.arange(2 * shards, dtype=np.uint64).reshape(2, shards)
    found, at = [], begin
    for words in (POST_WORDS, _EDGE_WORDS * max_edges, 2 * _MESSAGE_WORDS * max_events):
        found.append(np.uint64(at) + slot * np.uint64(4 * words))
        at += 2 * shards * 4 * words
    return found[0], found[1], found[2]


def peer_lost_flag() -> Words:
    """A word in host memory that kernels read. It is 0 until `mark_peer_lost` sets it."""
    word = _pinned(1)
    word[0] = 0
    return word


def _pinned(words: int) -> Words:
    """Host memory that kernels read and write while they run. Raises MemoryError."""
    try:
        memory: Any = cupy.cuda.PinnedMemory(4 * words, runtime.hostAllocPortable | runtime.hostAllocMapped)
    except runtime.CUDARuntimeError as error:
        raise MemoryError(f"cannot allocate {4 * words} bytes of pinned host memory: {error}") from error
    return np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint32, words)


_PORTABLE_MAPPED = 3
"""cudaHostRegisterPortable and cudaHostRegisterMapped (docs.nvidia.com/cuda/cuda-runtime-api, 6.11)."""


def host_inbox_words(shards: int, edges: int) -> int:
    """Size in 32-bit words of the inbox of one of `shards` shards of a graph with `edges` edges."""
    return inbox_words(shards, *_most(edges))


class HostMail:
    """Mail of a shard whose kernel writes into the inboxes of the other shards in host memory.

    `inboxes` [shards] are the inboxes of all shards by rank, each of `host_inbox_words` words, 0 at the start, and the
    same memory in every process. They must stay mapped until `close`. `edges` is the number of edges of the whole
    graph, `here` the number of shards whose kernels run on this GPU at the same time. Raises ConnectionError if CUDA
    cannot access this memory.
    """

    on_one_device = False
    """As in `DirectMail`: other devices read what the kernel writes."""
    reserved_processors = 0
    """As in `RelayedMail`."""

    def __init__(self, rank: int, inboxes: Sequence[Words], edges: int, here: int) -> None:
        self.rank, self.shards, self.here = rank, len(inboxes), here
        self.max_edges, self.max_events = _most(edges)
        self.peer_lost = peer_lost_flag()
        self._inboxes = list(inboxes)
        self._registered: list[int] = []
        self._pointers: list[int] = []
        try:
            for inbox in inboxes:
                self._register(inbox)
        except BaseException:
            self.close()
            raise

    @property
    def inbox(self) -> int:
        """Address of this shard's inbox, for the kernel."""
        return self._pointers[self.rank]

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        return send_tables(self._pointers, self.rank, self.max_edges, self.max_events)

    def mark_peer_lost(self) -> None:
        store_release(self.peer_lost, 0, 1)

    def abandon(self) -> None:
        """Tell the other shards to stop waiting for this shard."""
        never = np.full(POST_WORDS // 2, NEVER << 32, np.uint64)
        for q, inbox in enumerate(self._inboxes):
            for slot in (self.rank, self.shards + self.rank) if q != self.rank else ():
                first = POST_WORDS * slot
                store_release_longs(inbox[first : first + POST_WORDS].view(np.uint64), 0, never)

    def close(self) -> None:
        """Unregister the memory. No kernel may use it any more."""
        for address in self._registered:
            with suppress(runtime.CUDARuntimeError):
                runtime.hostUnregister(address)
        self._registered, self._pointers, self._inboxes = [], [], []

    def _register(self, inbox: Words) -> None:
        address = int(inbox.ctypes.data)
        try:
            runtime.hostRegister(address, inbox.nbytes, _PORTABLE_MAPPED)
            self._registered.append(address)
            # On some devices the address for kernels differs from the address for the host.
            pointer = int(runtime.pointerGetAttributes(address).devicePointer)
        except runtime.CUDARuntimeError as error:
            raise ConnectionError(f"CUDA cannot register memory that processes of the host share ({error})") from error
        if not pointer:
            raise ConnectionError("CUDA gives the GPU no address for memory that processes of the host share")
        self._pointers.append(pointer)


def _most(edges: int) -> tuple[int, int]:
    """Capacity of an exchange: edges of one shard, and halves with an event."""
    return max(1, min(edges, MAX_RELAYED_EDGES)), max(1, min(edges, MAX_RELAYED_EVENTS))
