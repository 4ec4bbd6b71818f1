"""Waiting until another process changes a word in shared memory, by Linux's futex, elsewhere by short sleeps."""

from __future__ import annotations

import ctypes
import platform
import sys
import time

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
