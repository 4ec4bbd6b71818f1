"""How the kernels of several processes on one machine find each other's memory."""

from __future__ import annotations

import socket
from contextlib import suppress
from dataclasses import dataclass

MOST_PEERS = 32
"""Subgraphs that can be peeled in step; as in peers.cuh."""


@dataclass(frozen=True)
class Address:
    """How others reach a mailbox."""

    process: tuple[str, int]
    """Machine and process that has it."""
    pointer: int
    """In that process."""
    handle: bytes
    """For other processes of the machine."""
    offsets: tuple[int, ...]
    """[peers + 1] where the part of each peer starts, in edges."""


def this_machine() -> str:
    """Name of this host, and of its boot: hosts may share a name."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()
