"""The files by which a group sends packets to the other groups of its host, which map them.

A group has one file in each folder. The first file starts with a header; each file may have buffers for packets. The
group holds a lock on its files while it lives. The system releases the lock when the process ends for any reason, and
others can test it from any process, container or thread (`flock` belongs to an open file, not to a process).

A group waits until another process changes a word of a file by Linux's futex, elsewhere by short sleeps.
"""

from __future__ import annotations

import ctypes
import errno
import fcntl
import mmap
import os
import platform
import secrets
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ....kernels.cpu.arrays.shared_words import load_acquire, store_release
from ...errors import OutOfRoom
from ...storage.own_files import open_own, plain_name
from .carrier import Words

_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "ppc64le": 221, "s390x": 238}
"""Number of the futex system call, by 64-bit machine."""
_WAIT, _WAKE, _ALL = 0, 1, 2**31 - 1
_SHORTEST, _LONGEST = 2e-5, 2e-3
"""Shortest and longest sleep without a futex, in seconds."""


class _Duration(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _futex() -> tuple[int, ctypes._NamedFuncPointer] | None:
    number = _NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None or sys.maxsize < 2**32:
        return None
    call = ctypes.CDLL(None).syscall  # ctypes releases the GIL during the call
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
    return number, call


_system = _futex()


def sleep_while(address: int, value: int, seconds: float, turn: int) -> None:
    """Sleep while the uint32 at `address` is `value`, until `wake_all` for it, or for at most `seconds`.

    May return earlier. `turn` counts the calls of one wait from 0; without a futex sleeps grow longer with it.
    """
    if _system is None:
        time.sleep(min(seconds, _LONGEST, _SHORTEST * 1.5 ** min(turn, 40)))
        return
    number, call = _system
    whole = int(seconds)
    duration = _Duration(whole, int((seconds - whole) * 1e9))
    # The kernel compares the word under a lock that `wake_all` takes as well, so that no change is missed.
    call(number, address, _WAIT, value, ctypes.addressof(duration))


def wake_all(address: int) -> None:
    """Wake all threads that sleep at `address`, in every process that maps it."""
    if _system is not None:
        number, call = _system
        call(number, address, _WAKE, _ALL, None)


def address_of(words: object) -> int:
    """Address of an array's first element."""
    found: int = words.__array_interface__["data"][0]  # type: ignore[attr-defined]
    return found


POSTED = 0
"""Word of the header: the group's last exchange."""
HEARTBEAT = 32
"""Word of the header: the heartbeat counter. Words that change are in separate cache lines."""
_READY, _NONCE, _GROUPS, _SLOTS, _SEEN = 64, 40, 41, 48, 64
"""`_READY` is the index of a uint32 of the header, the others are indices of uint64. A slot has four: the number of the
file, the first byte, the size in bytes, and one that is unused."""
_IS_READY = 0x6D696C6C
PREFIX = "edgemill-shards-"
"""Files with this prefix that no process has locked are removed after _ABANDONED_SECONDS."""
_ABANDONED_SECONDS = 600
_NO_SPACE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.ENOMEM)

Longs = NDArray[np.uint64]


@dataclass(frozen=True)
class Buffer:
    """A mapped part of a file that holds packets."""

    file: int
    first: int
    bytes: int
    words: Words
    longs: Longs
    """The same memory as uint64."""
    map: mmap.mmap

    @classmethod
    def of(cls, handles: Sequence[int], file: int, first: int, size: int, access: int) -> Buffer:
        """Map the part of a file from byte `first` on. Raises OSError."""
        content = mmap.mmap(handles[file], size, access=access, offset=first)
        return cls(file, first, size, np.frombuffer(content, np.uint32), np.frombuffer(content, np.uint64), content)


class _File:
    """The open files of a group, whether this one or another."""

    def __init__(self, paths: Sequence[Path], handles: list[int], groups: int, access: int) -> None:
        self._paths, self.handles = paths, handles
        header = Buffer.of(handles, 0, 0, _header_bytes(groups), access)
        self.words, self.longs = header.words, header.longs
        self._buffers: list[Buffer | None] = [None, None]
        """For odd and even exchanges."""
        self.posted_at = address_of(self.words) + 4 * POSTED

    @property
    def nonce(self) -> int:
        """A random number that identifies the file."""
        return int(self.longs[_NONCE])

    @property
    def groups(self) -> int:
        """Number of groups of the run."""
        return int(self.longs[_GROUPS])

    def seen(self, groups: int) -> list[int]:
        """[groups] nonces of the files that this group has opened; 0 for a file not yet opened."""
        found: list[int] = self.longs[_SEEN : _SEEN + groups].tolist()
        return found

    def unlink(self) -> None:
        """Unlink the files, unless other files have replaced them."""
        for path, handle in zip(self._paths, self.handles, strict=False):
            with suppress(OSError):
                if os.path.samestat(os.lstat(path), os.fstat(handle)):
                    os.unlink(path)

    def close(self) -> None:
        """Close the files. Mapped memory stays until its last array is deleted."""
        for handle in self.handles:
            with suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_UN)  # maps keep handles of their own, which hold the lock
            os.close(handle)
        self.handles = []
        self.words, self.longs = np.zeros(0, np.uint32), np.zeros(0, np.uint64)
        self._buffers = [None, None]


class GroupFile(_File):
    """The files of this group, one in each folder."""

    def __init__(self, folders: Sequence[str], name: str, rank: int, groups: int) -> None:
        """Raises OutOfRoom, OSError."""
        paths = [path_of(folder, name, rank) for folder in folders]
        handles: list[int] = []
        nonce = secrets.randbits(63) | 1
        sizes = [_header_bytes(groups)] + [mmap.ALLOCATIONGRANULARITY] * (len(folders) - 1)
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
            if isinstance(error, OSError) and error.errno in _NO_SPACE:
                raise _out_of_room(folders, error) from error
            raise
        self.folders = tuple(folders)
        """Folders of the files."""
        self._ends = sizes
        self.longs[_NONCE], self.longs[_GROUPS] = nonce, groups
        self.announce(rank, nonce)
        store_release(self.words, _READY, _IS_READY)

    def announce(self, rank: int, nonce: int) -> None:
        """Announce that this group has opened the file of group `rank`."""
        self.longs[_SEEN + rank] = nonce

    def buffer(self, turn: int, size: int) -> Buffer:
        """A buffer of at least `size` bytes for odd or even exchanges (`turn`), in place of the last one.

        No other group reads the old buffer any more. The other groups learn the location of the new buffer from the
        header. Raises OutOfRoom.
        """
        old = self._buffers[turn]
        if old is not None and old.bytes >= size:
            return old
        granule = mmap.ALLOCATIONGRANULARITY
        size = -(-max(size, 2 * old.bytes if old else 2**16) // granule) * granule
        made = self._allocate(size)
        if old is not None and hasattr(mmap, "MADV_REMOVE"):
            with suppress(OSError):
                old.map.madvise(mmap.MADV_REMOVE)
        self._buffers[turn] = made
        at = _SLOTS + 4 * turn
        self.longs[at : at + 3] = made.file, made.first, made.bytes
        return made

    def _allocate(self, size: int) -> Buffer:
        full: OSError | None = None
        for file, handle in enumerate(self.handles):
            first = self._ends[file]
            try:
                os.posix_fallocate(handle, first, size)  # a write to a sparse file may end the process by a signal
                made = Buffer.of(self.handles, file, first, size, mmap.ACCESS_WRITE)
            except OSError as error:
                if error.errno not in _NO_SPACE:
                    raise
                with suppress(OSError):
                    os.ftruncate(handle, first)
                full = error
                continue
            self._ends[file] += size
            return made
        assert full is not None
        raise _out_of_room(self.folders, full) from full

    def post(self, number: int) -> None:
        """Announce that the packets of an exchange are complete."""
        store_release(self.words, POSTED, number)
        wake_all(self.posted_at)


class OtherFile(_File):
    """The files of another group, for reading."""

    def __init__(self, paths: list[Path], handles: list[int], groups: int) -> None:
        super().__init__(paths, handles, groups, mmap.ACCESS_READ)

    @classmethod
    def find(cls, folders: Sequence[str], name: str, rank: int, groups: int) -> OtherFile | None:
        """The files of group `rank`, None if they are not there or not ready. Raises OSError."""
        paths = [path_of(folder, name, rank) for folder in folders]
        handles: list[int] = []
        try:
            for path in paths:
                handles.append(open_own(path, os.O_RDONLY | os.O_CLOEXEC))
                found = os.fstat(handles[-1])
                if found.st_uid != os.geteuid() or not is_locked(handles[-1]):
                    return None
            if os.fstat(handles[0]).st_size < _header_bytes(groups):
                return None
            other = cls(paths, handles, groups)
            nonce = other.nonce.to_bytes(8, "little")
            if load_acquire(other.words, _READY) == _IS_READY and all(os.pread(h, 8, 0) == nonce for h in handles[1:]):
                handles = []
                return other
            return None
        except FileNotFoundError:
            return None
        finally:
            for handle in handles:
                os.close(handle)

    def is_replaced(self) -> bool:
        """Whether the path leads to another file, as that of a later run."""
        with suppress(OSError):
            return not os.path.samestat(os.lstat(self._paths[0]), os.fstat(self.handles[0]))
        return False

    def is_alive(self) -> bool:
        """Whether the group that made the files lives."""
        return is_locked(self.handles[0])

    def buffer(self, turn: int) -> Buffer:
        """The buffer of the group's packets of this exchange, which it must have posted. Raises OSError."""
        at = _SLOTS + 4 * turn
        file, first, size = self.longs[at : at + 3].tolist()
        buffer = self._buffers[turn]
        if buffer is None or (buffer.file, buffer.first, buffer.bytes) != (file, first, size):
            self._buffers[turn] = buffer = Buffer.of(self.handles, file, first, size, mmap.ACCESS_READ)
        return buffer


def path_of(folder: str, name: str, rank: int) -> Path:
    """Path of a group's file."""
    return Path(folder) / plain_name(f"{PREFIX}{name}-{rank}")


def is_locked(handle: int) -> bool:
    """Whether a living process has locked an open file."""
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(handle, fcntl.LOCK_UN)
    return False


def remove_abandoned(folders: Sequence[str], name: str | None = None) -> None:
    """Remove the files of dead groups: those of the run `name`, or without a name all older than 10 minutes."""
    for folder in folders:
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.name.startswith(PREFIX if name is None else f"{PREFIX}{name}-"):
                    with suppress(OSError):
                        old = name is not None or time.time() - entry.stat().st_mtime > _ABANDONED_SECONDS
                        if old and entry.stat(follow_symlinks=False).st_uid == os.geteuid():
                            _remove_if_unlocked(Path(entry.path))


def _remove_if_unlocked(path: Path) -> None:
    handle = open_own(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        if not is_locked(handle):
            os.unlink(path)
    finally:
        os.close(handle)


def create_locked(path: Path) -> int:
    """Create and lock a file that only this user may read, in place of one of an earlier run."""
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


def _header_bytes(groups: int) -> int:
    granule = mmap.ALLOCATIONGRANULARITY
    return -(-8 * (_SEEN + groups) // granule) * granule


def _out_of_room(folders: Sequence[str], error: OSError) -> OutOfRoom:
    return OutOfRoom(
        f"no space for the messages of shards in {' and '.join(folders)} ({error.strerror}): give "
        "workers more shared memory (docker run --shm-size) or a larger local directory"
    )
