"""Sleep until another process changes a word in shared memory: Linux's futex, and short sleeps where there is none."""

from __future__ import annotations

import ctypes
import platform
import sys
import time

__all__ = ["address_of", "sleep_while", "wake_all"]

_NUMBERS = {"x86_64": 202, "aarch64": 98, "riscv64": 98, "loongarch64": 98, "ppc64le": 221, "s390x": 238}
"""Of the system call, by machine (64 bits each)."""
_WAIT, _WAKE, _ALL = 0, 1, 2**31 - 1
_SHORTEST, _LONGEST = 2e-5, 2e-3
"""Seconds of a sleep without a futex."""


class _Duration(ctypes.Structure):
    _fields_ = (("seconds", ctypes.c_long), ("nanoseconds", ctypes.c_long))


def _futex() -> tuple[int, ctypes._NamedFuncPointer] | None:
    number = _NUMBERS.get(platform.machine())
    if sys.platform != "linux" or number is None or sys.maxsize < 2**32:
        return None
    call = ctypes.CDLL(None).syscall  # releases the interpreter's lock while it waits
    call.restype = ctypes.c_long
    call.argtypes = [ctypes.c_long, ctypes.c_void_p, ctypes.c_long, ctypes.c_long, ctypes.c_void_p]
    return number, call


_system = _futex()


def sleep_while(address: int, value: int, seconds: float, turn: int) -> None:
    """Sleep while the uint32 at `address` is `value`, until someone wakes all that sleep there, or at most so long.

    May end before that. `turn` counts the calls of one wait, from 0: sleeps without a futex grow longer with it.
    """
    if _system is None:
        time.sleep(min(seconds, _LONGEST, _SHORTEST * 1.5 ** min(turn, 40)))
        return
    number, call = _system
    whole = int(seconds)
    duration = _Duration(whole, int((seconds - whole) * 1e9))
    # The kernel reads the word again under a lock that `wake_all` takes, too: no change is missed in between.
    call(number, address, _WAIT, value, ctypes.addressof(duration))


def wake_all(address: int) -> None:
    """Wake all that sleep at `address`, in every process that maps it."""
    if _system is not None:
        number, call = _system
        call(number, address, _WAKE, _ALL, None)


def address_of(words: object) -> int:
    """Where an array's first element lies in this process's memory."""
    found: int = words.__array_interface__["data"][0]  # type: ignore[attr-defined]
    return found
