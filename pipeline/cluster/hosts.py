"""Which workers share the processor cores of a machine."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from pathlib import Path

_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")
_CGROUP = Path("/proc/self/cgroup")


def machine() -> str:
    """The running system, which containers of one machine share."""
    try:
        return _BOOT_ID.read_text().strip()
    except OSError:
        return socket.gethostname()


def cores_here() -> tuple[str, int]:
    """Task: the cores that this worker may use, and their number. Workers with the same cores give the same text.

    Workers in different control groups, such as containers, are limited apart, whatever cores they see.
    """
    cores = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else range(os.cpu_count() or 1)
    try:
        group = _CGROUP.read_text()
    except OSError:
        group = ""
    return f"{machine()} {group} {list(cores)}", len(cores)


def by_host(cores: Sequence[tuple[str, int]]) -> list[list[int]]:
    """[hosts] the workers of each, by their index in `cores` [workers], which `cores_here` gave."""
    hosts: dict[str, list[int]] = {}
    for worker, (name, _) in enumerate(cores):
        hosts.setdefault(name, []).append(worker)
    return list(hosts.values())
