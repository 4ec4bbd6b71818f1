"""Which carrier the groups of shards use, and how the tasks of a run open theirs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Self

from ..tasks.shards import Carrier, MemoryCarrier
from ..tasks.shards.shared_memory import SharedMemoryCarrier
from .engine import Engine

__all__ = ["Meeting"]


@dataclass(frozen=True)
class Meeting:
    """Where the groups of one peeling meet, as their tasks are told."""

    carrier: str
    """memory, shared memory or Dask"""
    name: str
    held: list[list[int]]
    """[workers] groups that each holds."""

    @classmethod
    def of(cls, engine: Engine, name: str, held: Sequence[Sequence[int]], asked: str) -> Self:
        """Choose the carrier: the one that is `asked` for, or the quickest that all workers can use."""
        own = [list(groups) for groups in held]
        if len(own) == 1:
            return cls("memory", name, own)
        return cls("shared memory", name, own)

    @contextmanager
    def carriers_of(self, worker: int) -> Iterator[list[Carrier]]:
        """The carriers of the groups of one worker, within its task."""
        groups = sum(map(len, self.held))
        with ExitStack() as opened:
            carriers: list[Carrier] = []
            if self.carrier == "memory":
                carriers = list(MemoryCarrier.open(groups))
            else:
                with ThreadPoolExecutor(groups) as pool:
                    carriers = list(
                        pool.map(
                            lambda g: SharedMemoryCarrier.open(["/dev/shm"], self.name, g, groups, 60),
                            self.held[worker],
                        )
                    )
            for carrier in carriers:
                opened.callback(getattr(carrier, "close", lambda: None))
            yield carriers
