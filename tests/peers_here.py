"""Peeling in step with no GPU: the kernels of kernels/gpu/peers.py stood for by a loop over the subgraphs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from edgemill import kernels
from edgemill.kernels.graph import Topology
from edgemill.kernels.peers import Address
from edgemill.pipeline import planning
from edgemill.pipeline.plan import Plan


class Mailbox:
    """Where a subgraph's peeling is found."""

    def __init__(self, offsets: Sequence[int]) -> None:
        self.offsets = tuple(offsets)
        self.peeling: PeerPeeling | None = None
        self.abandoned = self.closed = False
        OPEN[id(self)] = self

    def address(self) -> Address:
        return Address("here", "this", id(self), b"", self.offsets)


OPEN: dict[int, Mailbox] = {}
"""By address. A test's mailboxes stay until the next test."""


class Links:
    """As `kernels.link_up`."""

    def __init__(self, like: Any, rank: int, mailbox: Mailbox, addresses: Sequence[Address]) -> None:
        self.rank, self.mailbox = rank, mailbox
        self.boxes = [OPEN[address.pointer] for address in addresses]

    def abandon(self) -> None:
        self.mailbox.abandoned = True

    def close(self) -> None:
        self.mailbox.closed = True


class PeerPeeling:
    """As `kernels.peeling_in_step`; a launch is one level."""

    def __init__(
        self,
        topology: Topology,
        count: NDArray[np.int32],
        ghost: NDArray[np.int32],
        start: NDArray[np.uint32],
        subscription: NDArray[np.int32],
        links: Links,
        low: NDArray[np.int32] | None = None,
        level: int = 0,
        levels: int = 0,
    ) -> None:
        self.count, self.low = count.copy(), np.zeros_like(count) if low is None else low.copy()
        self.ghost, self.start, self.subscription, self.rank = ghost, start, subscription, links.rank
        self.offsets = links.mailbox.offsets
        self.left, self.level, self.levels, self.sent = int(np.count_nonzero(count >= 0)), level, levels, 0
        self.in_progress, self.launched, self.quit, self.waited_for = True, False, False, False
        self._boxes = links.boxes
        self._rows = kernels.adjacency(topology)
        self._cascade = kernels.cascade(topology, self._rows)
        self._band = np.zeros_like(count)
        links.mailbox.peeling = self

    def launch(self, quit: bool) -> None:
        self.launched, self.quit = True, quit

    def settle(self) -> None:
        peers = [box.peeling for box in self._boxes]
        if any(box.abandoned or box.peeling is None for box in self._boxes):
            raise ConnectionError("another partition has failed")
        if self.launched:  # else another's call has let the level fall
            assert all(peer is not None and peer.launched for peer in peers), "it would wait forever"
            let_level_fall([peer for peer in peers if peer is not None])

    def fall(self, frontier: NDArray[np.int32]) -> list[tuple[int, int]]:
        """Let edges fall, and all that follows here; gives who else is to hear of which of its ghosts."""
        threshold = np.array([self.level + 1], np.int32)
        fallen, _ = self._cascade.run(self._rows, self.count, frontier, threshold, self._band)
        self.low[fallen] = self.level
        self.left -= len(fallen)
        told = [
            (int(q), int(place))
            for edge in fallen.tolist()
            for q, place in self.subscription[self.start[edge] : self.start[edge + 1]]
        ]
        self.sent += len(told)
        return told

    def wait(self) -> None:
        self.waited_for = True


def let_level_fall(peers: Sequence[PeerPeeling]) -> None:
    """One level in all subgraphs, ghosts as their owners tell."""
    level = peers[0].level
    frontiers = [np.flatnonzero((p.count >= 0) & (p.count <= level)).astype(np.int32) for p in peers]
    fell = any(map(len, frontiers))
    while any(map(len, frontiers)):
        heard: list[list[int]] = [[] for _ in peers]
        for peer, frontier in zip(peers, frontiers, strict=True):
            for q, place in peer.fall(frontier) if len(frontier) else ():
                heard[q].append(int(peers[q].ghost[peers[q].offsets[peer.rank] + place]))
        frontiers = [np.array(edges, np.int32) for edges in heard]
    for peer in peers:
        peer.level += 1
        peer.levels += fell
        peer.launched, peer.in_progress = False, any(p.left for p in peers) and not any(p.quit for p in peers)


def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have the host's arrays peeled in step by these."""
    OPEN.clear()

    def mailbox(like: Any, offsets: Sequence[int]) -> Mailbox:
        assert kernels.on_host(like)
        return Mailbox(offsets)

    monkeypatch.setattr(kernels, "mailbox", mailbox)
    monkeypatch.setattr(kernels, "link_up", Links)
    monkeypatch.setattr(kernels, "peeling_in_step", PeerPeeling)


def plan_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have CPUs, which peel shards, peel as many partitions as are asked for, as GPUs do."""

    def plan(one: Plan, count: int | str) -> Plan:
        return replace(one, partitions=count if isinstance(count, int) else 1)

    monkeypatch.setattr(planning, "_plan_on_cpus", plan)
