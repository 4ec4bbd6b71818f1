"""Names of the ways that the mail of shards on GPUs goes."""

from __future__ import annotations

from typing import Final

__all__ = ["HOST_MEMORY", "MAILBOXES", "NCCL", "RELAY"]

MAILBOXES: Final = "mailboxes"
"""Kernels write into the memory of each other's GPUs."""
HOST_MEMORY: Final = "host-memory"
"""Kernels write into memory of the host that all processes map."""
NCCL: Final = "nccl"
"""A thread of each process hands what the kernel wrote to NCCL."""
RELAY: Final = "relay"
"""A thread of each process hands what the kernel wrote to the groups' carrier."""
