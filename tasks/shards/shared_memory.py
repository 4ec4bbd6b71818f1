"""Letters between processes of one host: each group writes to a file that the others map, and tells them by a number.

An exchange is a few stores and loads. A group writes its letters to one of two rooms, in turn, then the number of the
exchange; it has met another when it reads that number, or the next, in the other's file. Memory order: see
`kernels.cpu.meeting`. Who waits looks for a moment, then sleeps on a futex. Files are removed from the folder as soon
as all groups have them open: nothing is left, however the groups end.

Groups may be threads of one process as well.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Sequence
from contextlib import suppress

from ...kernels.cpu.meeting import await_change, load, store
from ..errors import ClusterLost, InternalError
from .carrier import Letter, Words, check_words, lost
from .futex import sleep_while
from .group_file import BEAT, POSTED, GroupFile, OtherFile, remove_abandoned

__all__ = ["SharedMemoryCarrier"]

SILENT_SECONDS = 25.0
"""How long a group may give no sign of life."""
_BEAT_SECONDS = 1.0
_LOOK_SECONDS = 0.25
"""How often a group that waits looks whether the others live."""
_TURNS, _YIELDS = 100, 10
"""How often to look at a number before another thread may have the core (3 µs), and how often that before sleeping: as
long in all as it takes to be woken."""
_ABANDONED = 2**32 - 1
"""In place of the number of an exchange: the group has failed."""
_RUN, _EXCHANGE, _STARTS = 0, 1, 2
"""Places in the first numbers (uint64) of a room: which run and exchange, then where each letter starts (in words)."""


class SharedMemoryCarrier:
    """Carries between processes of one host; see `Carrier`. `open` gives it."""

    name = "shared memory"

    def __init__(self, own: GroupFile, others: Sequence[OtherFile | None], rank: int, silence: float) -> None:
        """`others` [groups] has None for this one."""
        self.rank, self.groups = rank, len(others)
        self._own, self._others = own, others
        self._run = _number_of_run([own.nonce if other is None else other.nonce for other in others])
        self._exchange = 0
        # With fewer cores than groups, who looks keeps another from working.
        self._yields = _YIELDS if (os.cpu_count() or 1) >= self.groups else 0
        self._silence = silence
        self._beats = [0] * self.groups
        self._silent = [0.0] * self.groups
        self._looked = time.monotonic()
        self._failed = False
        closing = threading.Event()
        beating = threading.Thread(target=_beat, args=(own.words, closing), name="shards-beat", daemon=True)
        beating.start()
        # A carrier that nobody closed must not seem to live.
        self._close = weakref.finalize(self, _let_go, [own, *filter(None, others)], beating, closing)

    @property
    def folders(self) -> tuple[str, ...]:
        """That all groups share, the first one in memory if there is one."""
        return self._own.folders

    @property
    def run(self) -> int:
        """A number that these groups, and no others, have."""
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
        """Meet the other groups within so many `seconds`.

        Letters lie in the first of the `folders` (/dev/shm) that has room. All groups give the same folders, in the
        same order, and the same `name`, which no other run uses at the same time. A group that is silent for `silence`
        seconds is lost. Raises ClusterLost, OutOfRoom, InternalError if others have another number of groups, OSError.
        """
        folders = list(dict.fromkeys(folders))
        remove_abandoned(folders)
        own = GroupFile(folders, name, rank, groups)
        others: list[OtherFile | None] = [None] * groups
        try:
            _meet(own, others, folders, name, rank, time.monotonic() + seconds)
        except BaseException:
            own.unlink()
            own.close()
            for other in filter(None, others):
                other.close()
            remove_abandoned(folders, name)
            raise
        # Another group may have done so, or have been lost before it did.
        own.unlink()
        for other in filter(None, others):
            other.unlink()
        return cls(own, others, rank, silence)

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """See `Carrier.exchange`. Raises OutOfRoom, too."""
        check_words(common, own, self.groups)
        if self._failed:
            raise lost(self.rank, "has ended")
        self._exchange += 1
        number, turn = self._exchange, self._exchange % 2
        mine = self._write(turn, common, own)
        self._own.post(number)
        given: list[Letter] = []
        for other in self._others:
            if other is None:
                given.append(mine)
                continue
            posted = self._await(other, number)
            if posted > number + 1:
                rank = self._others.index(other)
                if posted == _ABANDONED:
                    raise lost(rank, "failed")
                raise InternalError(f"group {rank} is in exchange {posted} of the shards, this one in {number}")
            given.append(self._read(other, turn))
        return given

    def _write(self, turn: int, common: Words, own: Sequence[Words]) -> Letter:
        """Write the letters to this group's room; gives the one to itself."""
        start = 2 * (_STARTS + self.groups + 2)
        starts = [start, start + len(common)]
        for words in own:
            starts.append(starts[-1] + len(words))
        room = self._own.room(turn, 4 * starts[-1])
        words = room.words
        room.longs[: _STARTS + self.groups + 2] = (self._run, self._exchange, *starts)
        words[start : starts[1]] = common
        for at, letter in enumerate(own, 1):
            if len(letter):
                words[starts[at] : starts[at + 1]] = letter
        return Letter(words[start : starts[1]], words[starts[self.rank + 1] : starts[self.rank + 2]])

    def _read(self, other: OtherFile, turn: int) -> Letter:
        room = other.room(turn)
        run, exchange, *starts = room.longs[: _STARTS + self.groups + 2].tolist()
        if run != self._run or exchange != self._exchange:
            raise InternalError(f"a letter of exchange {exchange} came in exchange {self._exchange} of the shards")
        words, at = room.words, self.rank + 1
        return Letter(words[starts[0] : starts[1]], words[starts[at] : starts[at + 1]])

    def _await(self, other: OtherFile, number: int) -> int:
        """Wait until a group has posted an exchange; gives what it has posted. Raises ClusterLost."""
        for _ in range(self._yields):
            posted: int = await_change(other.words, POSTED, number, _TURNS)
            if posted >= number:
                return posted
            os.sched_yield()
        turn = 0
        while (posted := load(other.words, POSTED)) < number:
            sleep_while(other.posted_at, posted, _LOOK_SECONDS, turn)
            turn += 1
            now = time.monotonic()
            if now - self._looked >= _LOOK_SECONDS:
                # Where this process itself was held up, so were others, perhaps: that time does not count as silence.
                self._look(number, min(now - self._looked, 1.0))
                self._looked = now
        return posted

    def _look(self, number: int, passed: float) -> None:
        """Raises ClusterLost if a group that has not posted this exchange is lost."""
        for rank, other in enumerate(self._others):
            if other is None or load(other.words, POSTED) >= number:
                continue
            beat = load(other.words, BEAT)
            self._silent[rank] = 0.0 if beat != self._beats[rank] else self._silent[rank] + passed
            self._beats[rank] = beat
            if not other.is_alive() and load(other.words, POSTED) < number:
                raise lost(rank, "is lost, or ended before the others")
            if self._silent[rank] >= self._silence:
                raise lost(rank, f"gave no sign of life for {self._silence:g} seconds")

    def abandon(self) -> None:
        """See `Carrier.abandon`."""
        self._failed = True
        if self._close.alive:
            self._own.post(_ABANDONED)

    def close(self) -> None:
        """See `Carrier.close`."""
        self._failed = True
        self._close()


def _let_go(files: Sequence[GroupFile | OtherFile], beating: threading.Thread, closing: threading.Event) -> None:
    closing.set()
    beating.join()
    for file in files:
        file.close()


def _beat(words: Words, closing: threading.Event) -> None:
    """Give a sign of life, whatever the group's other threads do."""
    beat = 0
    while not closing.wait(_BEAT_SECONDS):
        beat = (beat + 1) % 2**32
        store(words, BEAT, beat)


def _meet(
    own: GroupFile, others: list[OtherFile | None], folders: list[str], name: str, rank: int, deadline: float
) -> None:
    """Open the files of all other groups, and wait until each group has opened all. Raises ClusterLost."""
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
            own.see(g, nonce)
        for other in filter(None, others):
            if other.groups != groups:
                raise InternalError(f"{other.groups} groups of shards meet {groups}")
        files = [own if other is None else other for other in others]
        if all(nonces) and all(file.seen(groups) == nonces for file in files):
            return
        for g, other in enumerate(others):
            if other is not None and other.seen(groups)[rank] == own.nonce and not other.is_alive():
                raise lost(g, "is lost, or ended before the others")
        if time.monotonic() > deadline:
            missing = [str(g) for g, file in enumerate(files) if file.seen(groups) != nonces or not nonces[g]]
            raise ClusterLost(f"groups {', '.join(missing)} of the shards did not come to meet the others; run again")
        time.sleep(pause)
        pause = min(2 * pause, 0.02)


def _number_of_run(nonces: Sequence[int]) -> int:
    """A number that the groups of one opening, and no others, have."""
    text = " ".join(map(str, nonces)).encode()
    return int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "little")
