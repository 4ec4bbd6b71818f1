"""Addresses by which the kernels of several processes on one machine open each other's memory."""

from __future__ import annotations

import json
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Self

MAX_PEERS = 32
"""Most shards that GPUs peel in step."""
MAX_PEERS_PER_DEVICE = 8
"""Most of these in one process: as many streams run at once by default (CUDA_DEVICE_MAX_CONNECTIONS)."""
THIS_PROCESS = secrets.token_hex(8)
"""A random name of this process. Containers of one machine may share host names and process ids."""


@dataclass(frozen=True)
class Address:
    """The address of a mailbox."""

    machine: str
    """The machine of the mailbox; see `machine_id`."""
    process: str
    """The process of the mailbox; see THIS_PROCESS."""
    pointer: int
    """Address in that process."""
    handle: bytes
    """CUDA's handle for other processes of the machine; empty if CUDA cannot share memory between processes."""

    def encode(self) -> bytes:
        """The address as text; see `decode`."""
        return json.dumps(asdict(self) | {"handle": self.handle.hex()}).encode()

    @classmethod
    def decode(cls, text: bytes) -> Self:
        """The address from its text."""
        fields = json.loads(text)
        return cls(**fields | {"handle": bytes.fromhex(fields["handle"])})


def machine_id() -> str:
    """Host name and boot id of this machine. The boot id distinguishes hosts with the same name."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()
