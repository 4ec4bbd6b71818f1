"""Which carrier the groups of shards can use: in memory, in memory that processes share, or over Dask's connections."""

from __future__ import annotations

import fcntl
import os
import socket
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple, TypeAlias

from distributed import Worker, get_worker

from ..tasks.errors import UsageError
from ..tasks.shards.carrier import Carrier, MemoryCarrier
from ..tasks.shards.group_file import PREFIX
from ..tasks.shards.shared_memory import SharedMemoryCarrier
from .engine import Engine
from .worker_carrier import WorkerCarrier

__all__ = ["CarrierChoice", "CarrierKind", "CarrierSetting", "carrier_for", "open_carrier"]

CarrierKind: TypeAlias = Literal["memory", "shared-memory", "dask"]
CarrierSetting: TypeAlias = Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
"""With mailboxes, GPUs carry their own mail: carriers tell where these are, and that all workers live."""
SHARED_MEMORY = "/dev/shm"
_BOOT = Path("/proc/sys/kernel/random/boot_id")


@dataclass(frozen=True)
class CarrierChoice:
    """What all groups are told. Group g is a task on the worker at `addresses[g]`."""

    kind: CarrierKind
    addresses: tuple[str, ...]
    """Of the workers, in the engine's order."""
    folders: tuple[str, ...] = ()
    """That all workers share, the first one in memory if there is one."""


class _Offer(NamedTuple):
    """What a worker has to share."""

    address: str
    kernel: str
    """Which running system it is on: containers of a host have one."""
    tokens: dict[str, tuple[str, int, int]]
    """Folder → a file in it, its device and number."""


def carrier_for(engine: Engine, setting: CarrierSetting = "auto") -> CarrierChoice:
    """The fastest carrier that all of the engine's workers can use, or that of the `setting`.

    Raises UsageError if shared memory is asked for and the workers share none; ClusterLost.
    """
    offers: list[_Offer] = engine.everywhere(_offer)
    try:
        reached: list[list[str]] = engine.everywhere(_reach, offers)
    finally:
        engine.everywhere(_withdraw, offers)
    addresses = tuple(offer.address for offer in offers)
    if len(addresses) == 1:
        return CarrierChoice("memory", addresses)
    folders = tuple(folder for folder in reached[0] if all(folder in found for found in reached))
    if setting == "dask" or (setting != "shared-memory" and not folders):
        return CarrierChoice("dask", addresses)
    if not folders:
        raise UsageError(
            "bounding.carrier is shared-memory, and the workers share no folder of one host: use auto or dask"
        )
    return CarrierChoice("shared-memory", addresses, folders)


def open_carrier(worker: Worker, choice: CarrierChoice, run: str, rank: int, seconds: float) -> Carrier:
    """The carrier of group `rank`, which a task of `worker` holds, once it has met the others within so many `seconds`.

    `run` names this peeling, and no other one: a second attempt has another name. Raises what the carriers' `open` do.
    """
    if choice.kind == "memory":
        return MemoryCarrier.open(1)[0]
    if choice.kind == "dask":
        return WorkerCarrier.open(worker, run, rank, choice.addresses, seconds)
    return SharedMemoryCarrier.open(choice.folders, run, rank, len(choice.addresses), seconds)


def _offer() -> _Offer:
    """Task: leave a file in each folder that could be shared."""
    worker = get_worker()
    tokens = {}
    for folder in (SHARED_MEMORY, worker.local_directory):
        with suppress(OSError):
            handle, path = tempfile.mkstemp(prefix=f"{PREFIX}offer-", dir=folder)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                found = os.fstat(handle)
                tokens[folder] = path, found.st_dev, found.st_ino
            except OSError:  # no locks there
                os.unlink(path)
            finally:
                os.close(handle)
    try:
        kernel = _BOOT.read_text().strip()
    except OSError:
        kernel = socket.gethostname()
    return _Offer(worker.address, kernel, tokens)


def _reach(offers: Sequence[_Offer]) -> list[str]:
    """Task: folders in which this worker and all others see the same files.

    Either all have left a file in it, or it is the first worker's own and this one can write there.
    """
    if len({offer.kernel for offer in offers}) > 1:
        return []  # two hosts may see the same files, and not each other's changes of what is mapped
    found = []
    for folder in offers[0].tokens:
        own = folder != SHARED_MEMORY
        seen = offers[:1] if own else offers
        if all(folder in o.tokens and _is_seen(*o.tokens[folder]) for o in seen) and os.access(folder, os.W_OK):
            found.append(folder)
    return found


def _is_seen(path: str, device: int, number: int) -> bool:
    try:
        with open(path, "rb") as file:
            here = os.fstat(file.fileno())
    except OSError:
        return False
    return (here.st_dev, here.st_ino, here.st_uid) == (device, number, os.geteuid())


def _withdraw(offers: Sequence[_Offer]) -> None:
    """Task: remove those files of offers that are within reach."""
    for offer in offers:
        for path, device, number in offer.tokens.values():
            if _is_seen(path, device, number):
                with suppress(OSError):
                    os.unlink(path)
