"""Names of the transports of messages between shards on GPUs."""

from __future__ import annotations

from typing import Final

MAILBOXES: Final = "mailboxes"
"""Kernels write to the memory of each other's GPUs."""
HOST_MEMORY: Final = "host-memory"
"""Kernels write to host memory that all processes map."""
NCCL: Final = "nccl"
"""A thread of each process sends the kernel's messages through NCCL."""
RELAY: Final = "relay"
"""A thread of each process sends the kernel's messages through the group's carrier."""
