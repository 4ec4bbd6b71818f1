"""Runs a command under the filters of a systemd unit, without systemd: its system calls and its address families.

    python system_calls.py UNIT COMMAND …

What is refused fails with EPERM. Needs libseccomp, and `systemd-analyze`, which knows systemd's sets of system calls.
The caller has root's rights or may gain no new ones (`setpriv --no-new-privs`).
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

# Of libseccomp's seccomp.h.
_ALLOW = 0x7FFF0000
_REFUSE = 0x00050000 | errno.EPERM
_EQUAL = 4


class _Comparison(ctypes.Structure):
    _fields_ = (
        ("argument", ctypes.c_uint),
        ("how", ctypes.c_int),
        ("first", ctypes.c_uint64),
        ("second", ctypes.c_uint64),
    )


def directive(unit: Path, name: str) -> list[str]:
    """The values of all lines `NAME=` of a unit."""
    return [line.removeprefix(f"{name}=") for line in unit.read_text().splitlines() if line.startswith(f"{name}=")]


def allowed_calls(filters: Sequence[str]) -> set[str]:
    """What lines of `SystemCallFilter=` allow, the first of which is an allow-list."""
    allowed = _members(["@default"])
    for line in filters:
        names = _members(line.removeprefix("~").split())
        allowed = allowed - names if line.startswith("~") else allowed | names
    return allowed


def _members(names: Sequence[str]) -> set[str]:
    calls: set[str] = set()
    for name in names:
        if not name.startswith("@"):
            calls.add(name)
            continue
        shown = subprocess.run(["systemd-analyze", "syscall-filter", name], capture_output=True, text=True, check=True)
        inner = [line.strip() for line in shown.stdout.splitlines()[1:]]
        calls |= _members([line for line in inner if line and not line.startswith("#")])
    return calls


def filter_calls(allowed: set[str], families: Sequence[str]) -> None:
    """Refuse all other system calls, and sockets of other families, in this process and those that it starts."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(_REFUSE))
    for name in allowed - {"socket"}:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number >= 0:  # others are of other architectures
            _check(library.seccomp_rule_add_array(context, _ALLOW, number, 0, None))
    number = library.seccomp_syscall_resolve_name(b"socket")
    for family in families:
        equal = _Comparison(0, _EQUAL, getattr(socket, family), 0)
        _check(library.seccomp_rule_add_array(context, _ALLOW, number, 1, ctypes.byref(equal)))
    _check(library.seccomp_load(context))


def _check(result: int) -> None:
    if result < 0:
        raise OSError(-result, os.strerror(-result))


if __name__ == "__main__":
    _unit = Path(sys.argv[1])
    [_families] = directive(_unit, "RestrictAddressFamilies")
    filter_calls(allowed_calls(directive(_unit, "SystemCallFilter")), _families.split())
    os.execvp(sys.argv[2], sys.argv[2:])
