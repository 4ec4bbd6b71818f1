"""The carrier between groups of shards on different workers: its choice, and how the groups' tasks open it.

The choice is the fastest that all workers can use: in memory, in memory that processes share, or over Dask's
connections (`worker_carrier`).
"""

from __future__ import annotations

import fcntl
import os
import tempfile
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Literal, NamedTuple, Self, TypeAlias

from distributed import Worker, get_worker

from ...tasks.errors import StateLost, UsageError
from ...tasks.shards import Carrier, MemoryCarrier
from ...tasks.shards.carriers.group_file import PREFIX
from ...tasks.shards.carriers.shared_memory import SharedMemoryCarrier
from .engine import Engine
from .execution import machine
from .worker_carrier import WorkerCarrier

CarrierKind: TypeAlias = Literal["memory", "shared-memory", "dask"]
CarrierSetting: TypeAlias = Literal["auto", "mailboxes", "shared-memory", "dask", "nccl"]
"""With mailboxes and NCCL, GPUs send packets themselves. The carrier then exchanges their addresses and heartbeats."""
SHARED_MEMORY = "/dev/shm"


@dataclass(frozen=True)
class CarrierChoice:
    """The same carrier for all groups. Group g is a task on the worker at `addresses[g]`."""

    kind: CarrierKind
    addresses: tuple[str, ...]
    """Addresses of the workers, in the engine's order."""
    folders: tuple[str, ...] = ()
    """Folders that all workers share, the one in memory first if there is one."""


class _Offer(NamedTuple):
    """Files by which other workers recognise the folders of a worker."""

    address: str
    host: str
    """Boot id of the running system, which containers of one host share."""
    files: dict[str, tuple[str, int, int]]
    """Folder → path of a file in it, its device and inode."""


def carrier_for(
    engine: Engine, setting: CarrierSetting = "auto", workers: Sequence[str] | None = None
) -> CarrierChoice:
    """The fastest carrier that all workers of the engine, or those with the addresses `workers`, can use; or the
    carrier that `setting` names.

    Raises UsageError if shared memory is asked for and the workers share no folder; ClusterLost; StateLost if one of
    `workers` is lost. The same workers are asked for their folders once in a session.
    """
    # The scheduler may not know yet that a worker died. Its replacement is awaited here, before a task is bound to it.
    here = tuple(engine.on_every_worker(_address))
    known = engine.session.shared_folders
    if here not in known:
        here, folders = _find_shared_folders(engine)
        known[here] = folders
    folders = known[here]
    addresses = here if workers is None else tuple(workers)
    if gone := set(addresses) - set(here):
        raise StateLost(f"the worker at {min(gone)} was lost before it took part in a search; run again")
    if len(addresses) == 1:
        return CarrierChoice("memory", addresses)
    if setting == "dask" or (setting != "shared-memory" and not folders):
        return CarrierChoice("dask", addresses)
    if not folders:
        raise UsageError(
            "bounding.carrier is shared-memory, and the workers share no folder of one host: use auto or dask"
        )
    return CarrierChoice("shared-memory", addresses, folders)


def _find_shared_folders(engine: Engine) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The addresses of the workers that answer, and the folders that all of them share."""
    offers: list[_Offer] = engine.on_every_worker(_offer)
    try:
        shared: list[list[str]] = engine.on_every_worker(_shared_folders, offers)
    finally:
        engine.on_every_worker(_withdraw, offers)
    folders = tuple(folder for folder in shared[0] if all(folder in found for found in shared))
    return tuple(offer.address for offer in offers), folders


def open_carrier(worker: Worker, choice: CarrierChoice, run: str, rank: int, seconds: float) -> Carrier:
    """In a task of `worker`: the carrier of group `rank`, connected to the others within `seconds`.

    `run` is the name of the communicator: a second attempt has another name. Raises as the `open` of carriers does.
    """
    if choice.kind == "memory":
        return MemoryCarrier.open(1)[0]
    if choice.kind == "dask":
        return WorkerCarrier.open(worker, run, rank, choice.addresses, seconds)
    return SharedMemoryCarrier.open(choice.folders, run, rank, len(choice.addresses), seconds)


def _address() -> str:
    """Task: the address of this worker."""
    address: str = get_worker().address
    return address


def _offer() -> _Offer:
    """Task: make a file in each folder that could be shared."""
    worker = get_worker()
    files = {}
    for folder in (SHARED_MEMORY, worker.local_directory):
        with suppress(OSError):
            handle, path = tempfile.mkstemp(prefix=f"{PREFIX}offer-", dir=folder)
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
                status = os.fstat(handle)
                files[folder] = path, status.st_dev, status.st_ino
            except OSError:  # the file system has no locks
                os.unlink(path)
            finally:
                os.close(handle)
    return _Offer(worker.address, machine(), files)


def _shared_folders(offers: Sequence[_Offer]) -> list[str]:
    """Task: folders in which this worker and all others see the same files.

    The folder in memory must hold the files of all workers. Of the first worker's own folder it suffices that this
    worker sees its file and can write there.
    """
    if len({offer.host for offer in offers}) > 1:
        return []  # two hosts may see the same files, but not each other's changes to mapped memory
    found = []
    for folder in offers[0].files:
        makers = offers if folder == SHARED_MEMORY else offers[:1]
        if all(folder in o.files and _is_visible(*o.files[folder]) for o in makers) and os.access(folder, os.W_OK):
            found.append(folder)
    return found


def _is_visible(path: str, device: int, inode: int) -> bool:
    """Whether the path leads to this file here, and the file belongs to this user."""
    try:
        with open(path, "rb") as file:
            status = os.fstat(file.fileno())
    except OSError:
        return False
    return (status.st_dev, status.st_ino, status.st_uid) == (device, inode, os.geteuid())


def _withdraw(offers: Sequence[_Offer]) -> None:
    """Task: remove the files of offers that this worker sees."""
    for offer in offers:
        for path, device, inode in offer.files.values():
            if _is_visible(path, device, inode):
                with suppress(OSError):
                    os.unlink(path)


_OPENING_SECONDS = 60.0
"""How long groups wait for each other, from the start of the first group's task."""


@dataclass(frozen=True)
class Communicator:
    """Connects the groups of one gang. Worker w holds the groups w, w + workers, w + 2 workers, …"""

    name: str
    """No other communicator has this name."""
    choice: CarrierChoice
    groups: int
    direct: bool = False
    """Whether GPUs that peel bands read each other's memory."""

    @classmethod
    def of(cls, engine: Engine, groups: int, setting: CarrierSetting, workers_at: Sequence[str] | None = None) -> Self:
        """A communicator on the engine's workers, or on those with the addresses `workers_at`: on as many of them as
        there are groups. Raises as `carrier_for` does.
        """
        name = engine.communicator_name()
        choice = carrier_for(engine, setting, workers_at)
        workers = min(len(choice.addresses), groups)
        addresses = tuple(choice.addresses[group % workers] for group in range(groups))
        kind = "memory" if workers == 1 else choice.kind
        return cls(name, replace(choice, kind=kind, addresses=addresses), groups, setting == "mailboxes")

    @property
    def workers(self) -> int:
        """Workers that hold groups."""
        return len(set(self.choice.addresses))

    def groups_of(self, worker: int) -> range:
        """The groups that one worker holds."""
        return range(worker, self.groups, self.workers)

    @contextmanager
    def open_carriers(self, worker: int) -> Iterator[list[Carrier]]:
        """In a task: the carriers of a worker's groups, connected to all others. Raises as `open_carrier` does."""
        own = self.groups_of(worker)
        if self.choice.kind == "memory":
            yield list(MemoryCarrier.open(self.groups))
            return
        carriers: list[Carrier] = []
        try:
            with ThreadPoolExecutor(len(own)) as pool:
                opening = [
                    pool.submit(open_carrier, get_worker(), self.choice, self.name, group, _OPENING_SECONDS)
                    for group in own
                ]
            carriers += [future.result() for future in opening if future.exception() is None]
            for future in opening:
                future.result()
            yield carriers
        finally:
            for carrier in carriers:
                carrier.close()
