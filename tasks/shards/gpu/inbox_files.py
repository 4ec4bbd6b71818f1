"""Inboxes of shards in files that all processes of a host map."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from itertools import repeat

import numpy as np

from ...storage.own_files import open_own
from ..carriers.all_gather import all_gather
from ..carriers.carrier import Words
from ..carriers.group_file import create_locked, path_of, remove_abandoned
from ..carriers.shared_memory import SharedMemoryCarrier


@contextmanager
def mapped_inboxes(carriers: Sequence[SharedMemoryCarrier], words: int, pool: Executor) -> Iterator[list[Words]]:
    """[groups] the inboxes of all groups: zeros, of at least `words` words. `carriers` are those of this process.

    The files are unlinked by then; their space is freed with the last process that maps them. Raises ConnectionError in
    every process if one of them has no space for its inboxes or cannot map another one, and the errors of
    `Carrier.exchange`.
    """
    folders, name = carriers[0].folders, f"{carriers[0].run:016x}-mail"
    size = -(-4 * words // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
    with ExitStack() as stack:
        try:
            own = [_create(folders, name, carrier.rank, size, stack) for carrier in carriers]
            found, *_ = pool.map(all_gather, carriers, own)
            inboxes, why = _map_all(folders, name, found, size)
            # After this exchange no process opens a file by its name.
            reasons, *_ = pool.map(all_gather, carriers, repeat(why.encode()))
        finally:
            for carrier in carriers:
                for folder in folders:
                    with suppress(OSError):
                        os.unlink(path_of(folder, name, carrier.rank))
            remove_abandoned(folders, name)  # files of groups that died
        if any(reasons):
            raise ConnectionError(next(reason.decode() for reason in reasons if reason))
        yield inboxes


def _create(folders: Sequence[str], name: str, rank: int, size: int, stack: ExitStack) -> bytes:
    """Create a file of zeros in the first folder with enough space; returns the folder's number, or b"" without one."""
    for at, folder in enumerate(folders):
        with suppress(OSError), ExitStack() as making:
            handle = create_locked(path_of(folder, name, rank))
            making.callback(os.close, handle)
            os.posix_fallocate(handle, 0, size)
            stack.enter_context(making.pop_all())
            return str(at).encode()
    return b""


def _map_all(folders: Sequence[str], name: str, found: Sequence[bytes], size: int) -> tuple[list[Words], str]:
    """Map the inboxes of all groups from the folders with the numbers `found`; the text says why that failed."""
    inboxes: list[Words] = []
    for rank, at in enumerate(found):
        if not at:
            return [], f"there is no space for {size} bytes in {' and '.join(folders)}"
        path = path_of(folders[int(at)], name, rank)
        try:
            handle = open_own(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid != os.geteuid():
                    return [], f"{path} belongs to another user"
                inboxes.append(np.frombuffer(mmap.mmap(handle, size), np.uint32))
            finally:
                os.close(handle)
        except OSError as error:
            return [], f"{path} cannot be mapped ({error})"
    return inboxes, ""
