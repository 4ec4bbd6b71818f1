"""What stands for kernels of shards and for their mail, where there is no GPU."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Event
from typing import Any

import numpy as np

from edgemill.kernels.cpu.shards import Cut
from edgemill.kernels.gpu_shards import Address
from edgemill.tasks.errors import ClusterLost
from edgemill.tasks.shards import ShardEdges, ShardOnGpu

NOTHING = np.empty(0, np.int32)


class Mailbox:
    """Of one shard."""

    def __init__(self, group: int) -> None:
        self.group = group

    def address(self) -> Address:
        return Address("a machine", f"process {self.group}", 2**48 + self.group, bytes(range(200, 210)))


class Mail:
    """Of a shard whose kernel posts once in each of a few meetings."""

    reserved_processors, meetings = 0, 3
    max_common_words, max_own_words = 10, 10

    def __init__(self, rank: int, shards: int) -> None:
        self.rank, self.shards = rank, shards
        self.came: list[tuple[int, int, list[int], list[int]]] = []
        self.closed = self.abandoned = 0
        self.done, self.peer_lost = Event(), Event()
        if shards == 1:
            self.done.set()

    def await_post(self, turn: int, ended: Event) -> bool:
        if turn <= self.meetings:
            return True
        self.done.set()
        ended.wait(60)
        return False

    def outgoing(self, turn: int) -> Any:
        own = [np.array([turn, self.rank, q], np.uint32) for q in range(self.shards)]
        return np.array([turn, self.rank], np.uint32), own

    def deliver(self, turn: int, sender: int, common: Any, own: Any) -> None:
        self.came.append((turn, sender, common.tolist(), own.tolist()))

    def mark_peer_lost(self) -> None:
        self.peer_lost.set()
        self.done.set()

    def abandon(self) -> None:
        self.abandoned += 1

    def close(self) -> None:
        self.closed += 1


def edges_of(group: int, groups: int) -> ShardEdges:
    none = np.empty(0, np.uint32)
    return ShardEdges(group, groups, Cut(9, groups), none, none, NOTHING, 0)


def state_of(edges: ShardEdges, triangles: int = 0) -> ShardOnGpu:
    words = np.zeros(15, np.uint64)
    words[2] = triangles
    return ShardOnGpu(edges.group, edges.groups, 3, 2, 0, NOTHING, NOTHING, NOTHING, 0, 0, 0, 9, 7, 0, words)


def peel(edges: Sequence[ShardEdges], mails: Sequence[Any], *_: Any) -> list[ShardOnGpu]:
    for mail in mails:
        mail.done.wait(60)
        if mail.peer_lost.is_set():
            raise ClusterLost("peeling on GPUs ended")
    return [state_of(one) for one in edges]
