"""A group's files in folders that all groups of a host see: what it writes, and the others map.

The first file has a head, and each may have room for letters. A file is locked by the group that made it, for as long
as that lives: the system lets go of the lock when the process ends, however it ends, and others can test it from any
process, container or thread (`flock` belongs to an open file, not to a process).
"""

from __future__ import annotations

import errno
import fcntl
import mmap
import os
import secrets
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...kernels.cpu.meeting import load, store
from ..errors import OutOfRoom
from ..own_files import open_own, plain
from .carrier import Words
from .futex import address_of, wake_all

__all__ = [
    "BEAT",
    "POSTED",
    "PREFIX",
    "GroupFile",
    "OtherFile",
    "Room",
    "create_locked",
    "is_locked",
    "path_of",
    "remove_abandoned",
]

POSTED = 0
"""Word of the head: the group's last exchange."""
BEAT = 32
"""Word of the head: grows while the group lives. Words that change lie in cache lines of their own."""
_READY, _NONCE, _GROUPS, _SLOTS, _SEEN = 64, 40, 41, 48, 64
"""`_READY` is a word, the others are places in the head as uint64. A slot has four: number of the file, first byte,
bytes, and one that is free."""
_IS_READY = 0x6D696C6C
PREFIX = "edgemill-shards-"
"""Files of this name that nobody has locked are removed after a while."""
_ABANDONED_SECONDS = 600
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)

Longs = NDArray[np.uint64]


@dataclass(frozen=True)
class Room:
    """Where letters lie: bytes of a file, mapped."""

    file: int
    first: int
    bytes: int
    words: Words
    longs: Longs
    """The same memory."""
    map: mmap.mmap

    @classmethod
    def of(cls, handles: Sequence[int], file: int, first: int, size: int, access: int) -> Room:
        """Map it; raises OSError."""
        content = mmap.mmap(handles[file], size, access=access, offset=first)
        return cls(file, first, size, np.frombuffer(content, np.uint32), np.frombuffer(content, np.uint64), content)


class _File:
    """What own and other groups' files have alike."""

    def __init__(self, paths: Sequence[Path], handles: list[int], groups: int, access: int) -> None:
        self._paths, self.handles = paths, handles
        head = Room.of(handles, 0, 0, _head_bytes(groups), access)
        self.words, self.longs = head.words, head.longs
        self._rooms: list[Room | None] = [None, None]
        """For every other exchange."""
        self.posted_at = address_of(self.words) + 4 * POSTED

    @property
    def nonce(self) -> int:
        """A random number of the opening that the file was made for."""
        return int(self.longs[_NONCE])

    @property
    def groups(self) -> int:
        """How many the group takes part with."""
        return int(self.longs[_GROUPS])

    def seen(self, groups: int) -> list[int]:
        """[groups] nonces of the files that this group has opened; 0 for none yet."""
        found: list[int] = self.longs[_SEEN : _SEEN + groups].tolist()
        return found

    def unlink(self) -> None:
        """Remove the files' names, if they are still those of these files."""
        for path, handle in zip(self._paths, self.handles, strict=False):
            with suppress(OSError):
                if os.path.samestat(os.lstat(path), os.fstat(handle)):
                    os.unlink(path)

    def close(self) -> None:
        """Let go of the files; what is mapped stays until the last array of it goes."""
        for handle in self.handles:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # maps have handles of their own, which keep the lock
            os.close(handle)
        self.handles = []
        self.words, self.longs = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
        self._rooms = [None, None]


class GroupFile(_File):
    """The files of this group, one in each folder."""

    def __init__(self, folders: Sequence[str], name: str, rank: int, groups: int) -> None:
        """Raises OutOfRoom, OSError."""
        paths = [path_of(folder, name, rank) for folder in folders]
        handles: list[int] = []
        nonce = secrets.randbits(63) | 1
        sizes = [_head_bytes(groups)] + [mmap.ALLOCATIONGRANULARITY] * (len(folders) - 1)
        try:
            for path, size in zip(paths, sizes, strict=True):
                handles.append(create_locked(path))
                os.posix_fallocate(handles[-1], 0, size)
            for handle in handles[1:]:
                os.pwrite(handle, nonce.to_bytes(8, "little"), 0)
            super().__init__(paths, handles, groups, mmap.ACCESS_WRITE)
        except BaseException as error:
            for handle, path in zip(handles, paths, strict=False):
                os.unlink(path)
                os.close(handle)
            if isinstance(error, OSError) and error.errno in _NO_ROOM:
                raise _no_room(folders, error) from error
            raise
        self.folders = tuple(folders)
        """Where the files are."""
        self._ends = sizes
        self.longs[_NONCE], self.longs[_GROUPS] = nonce, groups
        self.see(rank, nonce)
        store(self.words, _READY, _IS_READY)

    def see(self, rank: int, nonce: int) -> None:
        """Tell all that a file has been opened here."""
        self.longs[_SEEN + rank] = nonce

    def room(self, turn: int, size: int) -> Room:
        """Room for letters of so many bytes, in place of what there was for every other exchange.

        Nobody reads what is there, and the others hear where the new room is with the letters. Raises OutOfRoom.
        """
        old = self._rooms[turn]
        if old is not None and old.bytes >= size:
            return old
        granule = mmap.ALLOCATIONGRANULARITY
        size = -(-max(size, 2 * old.bytes if old else 2**16) // granule) * granule
        made = self._make_room(size)
        if old is not None and hasattr(mmap, "MADV_REMOVE"):
            with suppress(OSError):
                old.map.madvise(mmap.MADV_REMOVE)
        self._rooms[turn] = made
        at = _SLOTS + 4 * turn
        self.longs[at : at + 3] = made.file, made.first, made.bytes
        return made

    def _make_room(self, size: int) -> Room:
        full: OSError | None = None
        for file, handle in enumerate(self.handles):
            first = self._ends[file]
            try:
                os.posix_fallocate(handle, first, size)  # else a write to it may end the process
                made = Room.of(self.handles, file, first, size, mmap.ACCESS_WRITE)
            except OSError as error:
                if error.errno not in _NO_ROOM:
                    raise
                with suppress(OSError):
                    os.ftruncate(handle, first)
                full = error
                continue
            self._ends[file] += size
            return made
        assert full is not None
        raise _no_room(self.folders, full) from full

    def post(self, number: int) -> None:
        """Tell all that the letters of an exchange are there."""
        store(self.words, POSTED, number)
        wake_all(self.posted_at)


class OtherFile(_File):
    """The files of another group, for reading."""

    def __init__(self, paths: list[Path], handles: list[int], groups: int) -> None:
        super().__init__(paths, handles, groups, mmap.ACCESS_READ)

    @classmethod
    def find(cls, folders: Sequence[str], name: str, rank: int, groups: int) -> OtherFile | None:
        """The files of a group that is there; None while it is not. Raises OSError."""
        paths = [path_of(folder, name, rank) for folder in folders]
        handles: list[int] = []
        try:
            for path in paths:
                handles.append(open_own(path, os.O_RDONLY | os.O_CLOEXEC))
                found = os.fstat(handles[-1])
                if found.st_uid != os.geteuid() or not is_locked(handles[-1]):
                    return None
            if os.fstat(handles[0]).st_size < _head_bytes(groups):
                return None
            other = cls(paths, handles, groups)
            nonce = other.nonce.to_bytes(8, "little")
            if load(other.words, _READY) == _IS_READY and all(os.pread(h, 8, 0) == nonce for h in handles[1:]):
                handles = []
                return other
            return None
        except FileNotFoundError:
            return None
        finally:
            for handle in handles:
                os.close(handle)

    def is_replaced(self) -> bool:
        """Whether another file has come to stand at the path, as that of a later run does."""
        with suppress(OSError):
            return not os.path.samestat(os.lstat(self._paths[0]), os.fstat(self.handles[0]))
        return False

    def is_alive(self) -> bool:
        """Whether the group that made it is there."""
        return is_locked(self.handles[0])

    def room(self, turn: int) -> Room:
        """Where the group's letters of this exchange lie; to be called once it has posted them. Raises OSError."""
        at = _SLOTS + 4 * turn
        file, first, size = self.longs[at : at + 3].tolist()
        room = self._rooms[turn]
        if room is None or (room.file, room.first, room.bytes) != (file, first, size):
            self._rooms[turn] = room = Room.of(self.handles, file, first, size, mmap.ACCESS_READ)
        return room


def path_of(folder: str, name: str, rank: int) -> Path:
    """The file of a group."""
    return Path(folder) / plain(f"{PREFIX}{name}-{rank}")


def is_locked(handle: int) -> bool:
    """Whether an open file is another's that lives."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def remove_abandoned(folders: Sequence[str], name: str | None = None) -> None:
    """Remove files of groups that are lost: of the run `name`, or else of all runs that began some time ago."""
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX if name is None else f"{PREFIX}{name}-"):
                    with suppress(OSError):
                        old = name is not None or time.time() - entry.stat().st_mtime > _ABANDONED_SECONDS
                        if old and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                            _remove_if_lost(Path(entry.path))


def _remove_if_lost(path: Path) -> None:
    handle = open_own(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not is_locked(handle):
            os.unlink(path)
    finally:
        os.close(handle)


def create_locked(path: Path) -> int:
    """A new locked file for this user alone, in place of one of an earlier run."""
    flags: Any = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
    with suppress(FileNotFoundError):
        os.unlink(path)
    handle = open_own(path, flags)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
    except BaseException:
        os.unlink(path)
        os.close(handle)
        raise
    return handle


def _head_bytes(groups: int) -> int:
    granule = mmap.ALLOCATIONGRANULARITY
    return -(-8 * (_SEEN + groups) // granule) * granule


def _no_room(folders: Sequence[str], error: OSError) -> OutOfRoom:
    return OutOfRoom(
        f"no room for what groups of shards send each other in {' and '.join(folders)} ({error.strerror}): give "
        "workers more shared memory (docker run --shm-size) or a larger local directory"
    )
