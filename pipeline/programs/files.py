"""Entries of blocks in files of the workers, where they do not fit memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from ...tasks.programs import Block
from ...tasks.shards import FileAllocator
from ..cluster.engine import Engine
from ..cluster.this_worker import scratch_folder
from ..plan.limits import FILL, SHARE_OF_PIECES


def task_bytes(engine: Engine) -> int | None:
    """Bytes of entries that a task of programs has in memory, if workers keep results in files; else None."""
    capacity = engine.capacity
    if not engine.execution.results_in_files or not capacity.memory_bytes:
        return None
    return int(FILL * capacity.memory_bytes * SHARE_OF_PIECES)


@contextmanager
def file_allocator(resident: int | None, blocks: Sequence[Block] = ()) -> Iterator[FileAllocator | None]:
    """Context with an allocator of arrays in files of the worker. About `resident` bytes of them, and of the entries of
    `blocks`, stay in memory; None without a limit.
    """
    if resident is None:
        yield None
        return
    with FileAllocator(scratch_folder(), resident) as allocator:
        for block in blocks:
            allocator.watch(block.rows.source)
            if block.rows.weight is not None:
                allocator.watch(block.rows.weight)
        yield allocator
