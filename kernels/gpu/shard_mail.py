"""Where a shard's kernel writes what others are to know, and reads what they wrote; shard_mail.cuh has the layout."""

from __future__ import annotations

import time
from collections.abc import Sequence
from threading import Event
from typing import Any

import cupy
import numpy as np
from cupy.cuda import runtime
from numpy.typing import NDArray

from ..cpu.meeting import await_change, store, store_longs
from ..peers import Address
from .peers import NEVER, Links, Mailbox

MOST_EDGES = 2**22
"""Edges of one shard that leave in one exchange. The others wait for the next."""
MOST_EVENTS = 2**20
"""Likewise halves that have something to tell."""
MOST_RELAYED_EDGES = 2**20
"""The same where the host carries: 32 MiB of its memory for each shard, and as much for what is sent."""
MOST_RELAYED_EVENTS = 2**18
HEADER = 4
"""Words before the edges that a shard sends through the host."""
LOST = 16
"""News: a shard has failed; as in shard_mail.cuh."""
POST_WORDS, _EDGE_WORDS, _MESSAGE_WORDS = 8, 2, 4
"""A post has edges, messages, news and least, each with the turn behind it."""
_TURNS = 300
"""How often to look for a post, 10 µs, before another thread may have the core."""
_LOOKS = 100
"""How often to look so before sleeping in between."""
_SLEEP_SECONDS = 5e-5

Words = NDArray[np.uint32]


class ShardMailbox(Mailbox):
    """Memory of a GPU that others write edges that leave into, and messages about halves."""

    def __init__(self, shards: int, edges: int, most_edges: int = MOST_EDGES, most_events: int = MOST_EVENTS) -> None:
        # The same at all shards of a run, as `edges` are those of the whole graph.
        self.most_edges, self.most_events = max(1, min(edges, most_edges)), max(1, min(edges, most_events))
        never = np.array([0, NEVER] * 4, np.uint32)
        each = _EDGE_WORDS * self.most_edges + 2 * _MESSAGE_WORDS * self.most_events
        super().__init__(shards, never, 2 * shards * 4 * each)


class DirectMail(Links):
    """Mail of a shard that writes into the other shards' mailboxes, on this GPU or on others that it reaches.

    `rank` is the shard, `mailbox` its own, `addresses` those of all. Raises ConnectionError if one cannot be reached.
    """

    mailbox: ShardMailbox
    spare = 0
    """As in `RelayedMail`."""

    def __init__(self, rank: int, mailbox: ShardMailbox, addresses: Sequence[Address]) -> None:
        super().__init__(rank, mailbox, addresses)
        self.lost = no_loss()
        self.most_edges, self.most_events = mailbox.most_edges, mailbox.most_events

    @property
    def shards(self) -> int:
        """Of the graph."""
        return len(self.pointers)

    @property
    def on_one_device(self) -> bool:
        """Whether all shards, two or more, are peeled on this GPU: no other device reads what one writes."""
        return 1 < self.here == self.shards  # one shard alone runs the kernel that it runs beside other GPUs

    @property
    def inbox(self) -> int:
        """Address of the own mailbox."""
        return self.pointers[self.rank]

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Addresses for posts, edges and messages: [2, shards] each, by turn and receiver."""
        return places(self.pointers, self.rank, self.most_edges, self.most_events)

    def lose(self) -> None:
        """Have the own kernel, which waits for another shard, end: that one does not come."""
        store(self.lost, 0, 1)


class RelayedMail:
    """Mail of a shard in memory of the host, for a thread that carries it: see `await_post`, `outgoing`, `deliver`.

    `here` are the shards whose kernels run on this GPU at once.
    """

    on_one_device = False
    """As in `DirectMail`: the host reads what the kernel writes."""

    def __init__(
        self,
        rank: int,
        shards: int,
        edges: int,
        here: int,
        most_edges: int = MOST_RELAYED_EDGES,
        most_events: int = MOST_RELAYED_EVENTS,
    ) -> None:
        self.rank, self.shards, self.here = rank, shards, here
        self.spare = 0
        """Multiprocessors that the kernel leaves to others, which must run while it waits."""
        self.most_edges, self.most_events = max(1, min(edges, most_edges)), max(1, min(edges, most_events))
        posts, messages = 2 * shards * POST_WORDS, 4 * shards * self.most_events * _MESSAGE_WORDS
        sent = HEADER + self.most_edges * _EDGE_WORDS
        self._memory = _pinned(posts + 2 * shards * self.most_edges * _EDGE_WORDS + messages)
        self._staged = _pinned(posts + 2 * sent + messages)
        self._posts: Words = self._staged[:posts]
        self._edges: NDArray[np.uint32] = self._staged[posts : posts + 2 * sent].reshape(2, sent)
        self._messages: NDArray[np.uint32] = self._staged[posts + 2 * sent :].reshape(2, shards, -1)
        self._inbox_edges: NDArray[np.uint32] = self._memory[
            posts : posts + 2 * shards * self.most_edges * _EDGE_WORDS
        ].reshape(2, shards, -1)
        self._inbox_messages: NDArray[np.uint32] = self._memory[len(self._memory) - messages :].reshape(2, shards, -1)
        self._inbox_posts = self._memory[:posts].view(np.uint64)
        self._others = [q for q in range(shards) if q != rank]
        self._memory[:posts] = self._posts[:] = 0
        self.lost = no_loss()

    @property
    def most_common(self) -> int:
        """Words of `outgoing` for all others, at most."""
        return HEADER + _EDGE_WORDS * self.most_edges

    @property
    def most_own(self) -> int:
        """Words of `outgoing` for one of them, at most."""
        return 2 * _MESSAGE_WORDS * self.most_events

    @property
    def inbox(self) -> int:
        """Address of the own inbox."""
        return int(self._memory.ctypes.data)

    def tables(self) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
        """Addresses for posts and messages [2, shards], by turn and receiver, and for edges [2, 2]: here and sent."""
        own = [kind[:, self.rank] for kind in _places(self.inbox, self.shards, self.most_edges, self.most_events)]
        slot = np.arange(2 * self.shards, dtype=np.uint64).reshape(2, self.shards)
        posts = np.uint64(self._posts.ctypes.data) + slot * np.uint64(4 * POST_WORDS)
        messages = np.uint64(self._messages.ctypes.data) + slot * np.uint64(self._messages[0, 0].nbytes)
        posts[:, self.rank], messages[:, self.rank] = own[0], own[2]
        sent = [self._edges[turn].ctypes.data + 4 * HEADER for turn in (0, 1)]
        edges = np.array([own[1], sent], np.uint64).T
        return posts, np.ascontiguousarray(edges[:, : 1 + bool(self._others)]), messages

    def await_post(self, turn: int, ended: Event) -> bool:
        """Wait until the kernel has posted its mail of meeting `turn`, counted from 1; False once `ended` is set."""
        for q in self._others:
            looks = 0
            for at in range(self._slot(turn, q) + 1, self._slot(turn, q) + POST_WORDS, 2):
                while await_change(self._posts, at, turn, _TURNS) < turn:
                    if ended.is_set():
                        return False
                    looks += 1
                    if looks > _LOOKS:
                        time.sleep(_SLEEP_SECONDS)
        return True

    def outgoing(self, turn: int) -> tuple[Words, list[Words]]:
        """What the kernel wrote: words for all others, and [shards] those for each. Valid until the next meeting but
        one.
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
        """Give the kernel what another shard's `outgoing` was. Raises ValueError if it cannot be that."""
        edges, news, least = _counts(common)
        messages = len(own) // _MESSAGE_WORDS
        if len(common) != HEADER + _EDGE_WORDS * edges or edges > self.most_edges or messages > 2 * self.most_events:
            raise ValueError(f"a letter of {len(common)} and {len(own)} words for {edges} edges")
        side = turn & 1
        self._inbox_edges[side, sender, : _EDGE_WORDS * edges] = common[HEADER:]
        self._inbox_messages[side, sender, : len(own)] = own
        post = np.array([edges, messages, news, least], np.uint64) | np.uint64(turn << 32)
        store_longs(self._inbox_posts, self._slot(turn, sender) // 2, post)

    def lose(self) -> None:
        """As in `DirectMail`."""
        store(self.lost, 0, 1)

    def abandon(self) -> None:
        """Nothing: the thread that carries tells the others."""

    def close(self) -> None:
        """Give the memory back to the host."""
        self._memory = self._staged = self._posts = _NOTHING
        self._inbox_posts = np.empty(0, np.uint64)
        self._edges = self._inbox_edges = self._messages = self._inbox_messages = _NOTHING

    def _slot(self, turn: int, shard: int) -> int:
        return ((turn & 1) * self.shards + shard) * POST_WORDS


_NOTHING = np.empty(0, np.uint32)


def _counts(common: Words) -> tuple[int, int, int]:
    if len(common) < HEADER:
        raise ValueError(f"a letter of {len(common)} words, which are fewer than its header has")
    edges, news, least, _ = common[:HEADER].tolist()
    return edges, news, least


def inbox_words(shards: int, most_edges: int, most_events: int) -> int:
    """Size of an inbox."""
    return 2 * shards * (POST_WORDS + _EDGE_WORDS * most_edges + 2 * _MESSAGE_WORDS * most_events)


def places(
    inboxes: Sequence[int], rank: int, most_edges: int, most_events: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Where shard `rank` writes posts, edges and messages: [2, shards] each, by turn and receiver.

    `inboxes` [shards] are where those of all begin.
    """
    found = [_places(begin, len(inboxes), most_edges, most_events) for begin in inboxes]
    posts, edges, messages = (
        np.ascontiguousarray(np.array([place[kind][:, rank] for place in found]).T) for kind in range(3)
    )
    return posts, edges, messages


def _places(
    begin: int, shards: int, most_edges: int, most_events: int
) -> tuple[NDArray[np.uint64], NDArray[np.uint64], NDArray[np.uint64]]:
    """Addresses of the posts, edges and messages of an inbox, [2, shards] each, by turn and sender."""
    slot = np.arange(2 * shards, dtype=np.uint64).reshape(2, shards)
    found, at = [], begin
    for words in (POST_WORDS, _EDGE_WORDS * most_edges, 2 * _MESSAGE_WORDS * most_events):
        found.append(np.uint64(at) + slot * np.uint64(4 * words))
        at += 2 * shards * 4 * words
    return found[0], found[1], found[2]


def no_loss() -> Words:
    """A word that the kernel looks at, which is 0."""
    word = _pinned(1)
    word[0] = 0
    return word


def _pinned(words: int) -> Words:
    """Memory of the host that kernels read and write while they run. Raises MemoryError."""
    try:
        memory: Any = cupy.cuda.PinnedMemory(4 * words, runtime.hostAllocPortable | runtime.hostAllocMapped)
    except runtime.CUDARuntimeError as error:
        raise MemoryError(f"{4 * words} bytes of the host that a GPU can reach: {error}") from error
    return np.frombuffer(cupy.cuda.PinnedMemoryPointer(memory, 0), np.uint32, words)
