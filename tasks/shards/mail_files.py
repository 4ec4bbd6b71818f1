"""Inboxes of shards in files that all processes of a host map, where their groups meet by shared memory."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from itertools import repeat

import numpy as np

from ..own_files import open_own
from .carrier import Words
from .group_file import create_locked, path_of, remove_abandoned
from .shared_memory import SharedMemoryCarrier
from .telling import tell_all

__all__ = ["mapped_inboxes"]


@contextmanager
def mapped_inboxes(carriers: Sequence[SharedMemoryCarrier], words: int, pool: Executor) -> Iterator[list[Words]]:
    """[groups] the inboxes of all groups, 0 at first, of so many words or a few more; this process has `carriers`.

    The files have no names any more by then, and go with the last process that maps them. Raises ConnectionError, in
    every process, if one of them finds no room for its inboxes, or cannot map another's; and what `Carrier.exchange`
    does.
    """
    folders, name = carriers[0].folders, f"{carriers[0].run:016x}-mail"
    size = -(-4 * words // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
    with ExitStack() as stack:
        try:
            own = [_create(folders, name, carrier.rank, size, stack) for carrier in carriers]
            found, *_ = pool.map(tell_all, carriers, own)
            inboxes, why = _map_all(folders, name, found, size)
            # Nobody looks for a name any more once all have told this.
            reasons, *_ = pool.map(tell_all, carriers, repeat(why.encode()))
        finally:
            for carrier in carriers:
                for folder in folders:
                    with suppress(OSError):
                        os.unlink(path_of(folder, name, carrier.rank))
            remove_abandoned(folders, name)  # of groups that are lost
        if any(reasons):
            raise ConnectionError(next(reason.decode() for reason in reasons if reason))
        yield inboxes


def _create(folders: Sequence[str], name: str, rank: int, size: int, stack: ExitStack) -> bytes:
    """Make a file of zeros in the first folder that has room for it; gives the folder's number, or nothing."""
    for at, folder in enumerate(folders):
        with suppress(OSError), ExitStack() as making:
            handle = create_locked(path_of(folder, name, rank))
            making.callback(os.close, handle)
            os.posix_fallocate(handle, 0, size)
            stack.enter_context(making.pop_all())
            return str(at).encode()
    return b""


def _map_all(folders: Sequence[str], name: str, found: Sequence[bytes], size: int) -> tuple[list[Words], str]:
    """The inboxes of all groups, to read and write, from the folders with the numbers `found`; or why not."""
    inboxes: list[Words] = []
    for rank, at in enumerate(found):
        if not at:
            return [], f"there is no room for {size} bytes in {' and '.join(folders)}"
        path = path_of(folders[int(at)], name, rank)
        try:
            handle = open_own(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid != os.geteuid():
                    return [], f"{path} is another user's"
                inboxes.append(np.frombuffer(mmap.mmap(handle, size), np.uint32))
            finally:
                os.close(handle)
        except OSError as error:
            return [], f"{path} cannot be mapped ({error})"
    return inboxes, ""
