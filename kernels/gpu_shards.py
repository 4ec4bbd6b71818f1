"""Types and limits of the peeling of shards on GPUs. Imports no CuPy, as processes without a GPU need them too."""

from __future__ import annotations

import json
import secrets
import socket
from contextlib import suppress
from dataclasses import asdict, dataclass, fields
from typing import Self

import numpy as np
from numpy.typing import NDArray

from .runtime.sizes import SizedArrays

MAX_PEERS = 32
"""Most shards that GPUs peel in step."""
MAX_PEERS_PER_DEVICE = 8
"""Most of these shards on one GPU: CUDA runs so many streams at once by default (CUDA_DEVICE_MAX_CONNECTIONS)."""
THIS_PROCESS = secrets.token_hex(8)
"""A random name of this process. Containers of one machine may share host names and process ids."""


@dataclass(frozen=True)
class Address:
    """The address of GPU memory that other processes of the machine can open."""

    machine: str
    """The machine; see `machine_id`."""
    process: str
    """The process that allocated the memory; see THIS_PROCESS."""
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
    """Host name of this machine, and its boot id, if known, which distinguishes hosts with the same name."""
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        return f"{socket.gethostname()} {boot.read().strip()}"
    return socket.gethostname()


@dataclass(frozen=True)
class ShardSums(SizedArrays):
    """Counters of one shard. Their sums over all shards satisfy the conservation rules that the run checks."""

    left: int
    """Number of remaining edges of the whole graph."""
    entries: int
    """Number of row entries read."""
    triangles: int
    """Number of triangles removed."""
    fingerprint: int
    """Sum of hashes of removed edges mod 2^64: the high end's shard adds, the low end's subtracts."""
    sent: int
    """Number of messages sent."""
    received: int
    """Number of messages received."""
    alarms: int
    """Number of alarms sent."""
    reports: int
    """Number of reports sent."""
    grants: int
    """Number of grants sent."""
    faults: int
    """Number of halves that were missing or in a wrong role, and of events without room; 0 unless there is a bug."""
    spent: tuple[int, ...]
    """Nanoseconds of scanning halves, writing, meeting, receiving and removing, if the kernel measures them."""

    @classmethod
    def of(cls, words: NDArray[np.uint64]) -> ShardSums:
        """The counters from the words of Sums in shards/state.cuh."""
        counted = dict(zip((field.name for field in fields(cls)), map(int, words), strict=False))
        return cls(**{**counted, "spent": tuple(map(int, words[10:]))})  # type: ignore[arg-type]
