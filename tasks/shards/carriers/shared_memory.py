"""The carrier between processes of one host: each group writes to a file that the others map.

An exchange takes a few stores and loads. A group writes its packets to one of two buffers, in turn, and then the number
of the exchange to its header. A receiver waits until it reads that number, or the next, in the sender's file. Memory
order: see `kernels.cpu.arrays.shared_words`. A waiting group spins for a short time, then sleeps on a futex. Files are
unlinked as soon as all groups have them open, so that none is left behind however the groups end.

Groups may also be threads of one process.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress

from ....kernels.cpu.arrays.indexing import copy_words
from ....kernels.cpu.arrays.shared_words import load_acquire, spin_until_at_least, store_release
from ...errors import ClusterLost, InternalError
from .carrier import GroupPacket, Words, check_words, lost
from .group_file import HEARTBEAT, POSTED, GroupFile, OtherFile, remove_abandoned, sleep_while

SILENT_SECONDS = 25.0
"""Time without a heartbeat after which a group counts as lost."""
_HEARTBEAT_SECONDS = 1.0
_CHECK_SECONDS = 0.25
"""How often a waiting group checks whether the others live."""
_TURNS, _YIELDS = 100, 10
"""Loads of a number before the core is yielded (3 µs), and yields before sleeping. Both together take as long as a
wake-up.
"""
_ABANDONED = 2**32 - 1
"""Posted in place of the number of an exchange when the group has failed."""
_RUN, _EXCHANGE, _STARTS = 0, 1, 2
"""Indices of uint64 at the start of a buffer: the run, the exchange, then the start of each packet in words."""


class SharedMemoryCarrier:
    """Exchanges packets between processes of one host; see `Carrier`. `open` makes it."""

    name = "shared memory"

    def __init__(self, own: GroupFile, others: Sequence[OtherFile | None], rank: int, silence: float) -> None:
        """`others` [groups] is None for this group."""
        self.rank, self.groups = rank, len(others)
        self._own, self._others = own, others
        self._run = _number_of_run([own.nonce if other is None else other.nonce for other in others])
        self._exchange = 0
        # With fewer cores than groups, a group that spins would keep another from working.
        self._yields = _YIELDS if (os.cpu_count() or 1) >= self.groups else 0
        self._silence = silence
        self._heartbeats = [0] * self.groups
        self._silent = [0.0] * self.groups
        self._checked = time.monotonic()
        self._failed = False
        closing = threading.Event()
        heartbeats = threading.Thread(
            target=_send_heartbeats, args=(own.words, closing), name="shards-heartbeat", daemon=True
        )
        heartbeats.start()
        # A carrier that was deleted without close() must not send heartbeats.
        self._close = weakref.finalize(self, _release, [own, *filter(None, others)], heartbeats, closing)

    @property
    def folders(self) -> tuple[str, ...]:
        """Folders that all groups share; the first one is in memory if there is such a folder."""
        return self._own.folders

    @property
    def run(self) -> int:
        """A number that identifies the run; the same in all its groups."""
        return self._run

    @classmethod
    def open(
        cls,
        folders: Sequence[str],
        name: str,
        rank: int,
        groups: int,
        seconds: float,
        silence: float = SILENT_SECONDS,
    ) -> SharedMemoryCarrier:
        """Connect to the other groups within `seconds`.

        Packets are stored in the first of the `folders` (/dev/shm) that has space. All groups pass the same folders, in
        the same order, and the same `name`, which no other run may use at the same time. A group without a heartbeat
        for `silence` seconds is lost. Raises ClusterLost, OutOfRoom, OSError, and InternalError if another group has
        another number of groups.
        """
        folders = list(dict.fromkeys(folders))
        remove_abandoned(folders)
        own = GroupFile(folders, name, rank, groups)
        others: list[OtherFile | None] = [None] * groups
        try:
            _connect(own, others, folders, name, rank, time.monotonic() + seconds)
        except BaseException:
            own.unlink()
            own.close()
            for other in filter(None, others):
                other.close()
            remove_abandoned(folders, name)
            raise
        # Every group unlinks all files, as another group may have ended before it unlinked its own.
        own.unlink()
        for other in filter(None, others):
            other.unlink()
        return cls(own, others, rank, silence)

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`. Also raises OutOfRoom."""
        check_words(common, own, self.groups)
        if self._failed:
            raise lost(self.rank, "has ended")
        self._exchange += 1
        number, turn = self._exchange, self._exchange % 2
        mine = self._write(turn, common, own)
        self._own.post(number)
        received: list[GroupPacket] = []
        for other in self._others:
            if other is None:
                received.append(mine)
                continue
            posted = self._await(other, number)
            if posted > number + 1:
                rank = self._others.index(other)
                if posted == _ABANDONED:
                    raise lost(rank, "failed")
                raise InternalError(f"group {rank} is in exchange {posted} of the shards, this one in {number}")
            received.append(self._read(other, turn))
        return received

    def _write(self, turn: int, common: Words, own: Sequence[Words]) -> GroupPacket:
        """Write the packets to this group's buffer; returns the packet to itself."""
        start = 2 * (_STARTS + self.groups + 2)
        starts = [start, start + len(common)]
        for words in own:
            starts.append(starts[-1] + len(words))
        buffer = self._own.buffer(turn, 4 * starts[-1])
        words = buffer.words
        buffer.longs[: _STARTS + self.groups + 2] = (self._run, self._exchange, *starts)
        words[start : starts[1]] = common
        for at, packet in enumerate(own, 1):
            if len(packet):
                copy_words(packet, words[starts[at] : starts[at + 1]])
        return GroupPacket(words[start : starts[1]], words[starts[self.rank + 1] : starts[self.rank + 2]])

    def _read(self, other: OtherFile, turn: int) -> GroupPacket:
        buffer = other.buffer(turn)
        run, exchange, *starts = buffer.longs[: _STARTS + self.groups + 2].tolist()
        if run != self._run or exchange != self._exchange:
            raise InternalError(f"a packet of exchange {exchange} came in exchange {self._exchange} of the shards")
        words, at = buffer.words, self.rank + 1
        return GroupPacket(words[starts[0] : starts[1]], words[starts[at] : starts[at + 1]])

    def _await(self, other: OtherFile, number: int) -> int:
        """Wait until a group has posted an exchange; returns the number that it posted. Raises ClusterLost."""
        for _ in range(self._yields):
            posted: int = spin_until_at_least(other.words, POSTED, number, _TURNS)
            if posted >= number:
                return posted
            os.sched_yield()
        turn = 0
        while (posted := load_acquire(other.words, POSTED)) < number:
            sleep_while(other.posted_at, posted, _CHECK_SECONDS, turn)
            turn += 1
            now = time.monotonic()
            if now - self._checked >= _CHECK_SECONDS:
                # If this process was suspended, others may have been as well: that time does not count as silence.
                self._check(number, min(now - self._checked, 1.0))
                self._checked = now
        return posted

    def _check(self, number: int, passed: float) -> None:
        """Raises ClusterLost if a group that has not posted this exchange is lost."""
        for rank, other in enumerate(self._others):
            if other is None or load_acquire(other.words, POSTED) >= number:
                continue
            heartbeat = load_acquire(other.words, HEARTBEAT)
            self._silent[rank] = 0.0 if heartbeat != self._heartbeats[rank] else self._silent[rank] + passed
            self._heartbeats[rank] = heartbeat
            if not other.is_alive() and load_acquire(other.words, POSTED) < number:
                raise lost(rank, "is lost, or ended before the others")
            if self._silent[rank] >= self._silence:
                raise lost(rank, f"sent no heartbeat for {self._silence:g} seconds")

    def abandon(self) -> None:
        self._failed = True
        if self._close.alive:
            self._own.post(_ABANDONED)

    def close(self) -> None:
        self._failed = True
        self._close()


def _release(files: Sequence[GroupFile | OtherFile], heartbeats: threading.Thread, closing: threading.Event) -> None:
    closing.set()
    heartbeats.join()
    for file in files:
        file.close()


def _send_heartbeats(words: Words, closing: threading.Event) -> None:
    """Increment the heartbeat counter, whatever the group's other threads do."""
    heartbeat = 0
    while not closing.wait(_HEARTBEAT_SECONDS):
        heartbeat = (heartbeat + 1) % 2**32
        store_release(words, HEARTBEAT, heartbeat)


def _connect(
    own: GroupFile, others: list[OtherFile | None], folders: list[str], name: str, rank: int, deadline: float
) -> None:
    """Open the files of all other groups, and wait until each group has opened all files. Raises ClusterLost."""
    groups, pause = len(others), 0.001
    while True:
        for g in range(groups):
            if g == rank:
                continue
            other = others[g]
            if other is not None and other.is_replaced():
                others[g] = None
                other.close()
            if others[g] is None:
                with suppress(PermissionError):
                    others[g] = OtherFile.find(folders, name, g, groups)
        nonces = [own.nonce if g == rank else other.nonce if (other := others[g]) else 0 for g in range(groups)]
        for g, nonce in enumerate(nonces):
            own.announce(g, nonce)
        for other in filter(None, others):
            if other.groups != groups:
                raise InternalError(f"group {rank} of the shards has {groups} groups, another one {other.groups}")
        files = [own if other is None else other for other in others]
        if all(nonces) and all(file.seen(groups) == nonces for file in files):
            return
        for g, other in enumerate(others):
            if other is not None and other.seen(groups)[rank] == own.nonce and not other.is_alive():
                raise lost(g, "is lost, or ended before the others")
        if time.monotonic() > deadline:
            missing = [str(g) for g, file in enumerate(files) if file.seen(groups) != nonces or not nonces[g]]
            raise ClusterLost(f"groups {', '.join(missing)} of the shards did not connect to the others; run again")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _number_of_run(nonces: Sequence[int]) -> int:
    """A hash of the nonces of all groups."""
    text = " ".join(map(str, nonces)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
