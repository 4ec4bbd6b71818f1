"""How the kernels of several processes on one machine find each other's memory."""

from __future__ import annotations

import secrets
import socket
from contextlib import suppress
from dataclasses import dataclass

MOST_PEERS = 32
"""Shards that GPUs can peel in step; as MOST_SHARDS in shard_mail.cuh."""
MOST_ON_ONE_DEVICE = 8
"""Of these by one process: CUDA runs so many streams at once, unless told otherwise (CUDA_DEVICE_MAX_CONNECTIONS)."""
THIS_PROCESS = secrets.token_hex(8)
"""Told from all others: containers of one machine may share names and process numbers."""


@dataclass(frozen=True)
class Address:
    """How others reach a mailbox."""

    machine: str
    """That has it."""
    process: str
    """That has it; see THIS_PROCESS."""
    pointer: int
    """In that process."""
    handle: bytes
    """For other processes of the machine; empty where CUDA shares nothing between processes."""


def this_machine() -> str:
    """Name of this host, and of its boot: hosts may share a name."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()
