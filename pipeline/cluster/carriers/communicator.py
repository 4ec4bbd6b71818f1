"""The communicator of a gang: which worker holds each group, and how the groups' tasks open their carriers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from distributed import get_worker

from ....tasks.shards import Carrier, MemoryCarrier
from ..engine import Engine
from .choice import CarrierChoice, CarrierSetting, carrier_for, open_carrier

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
        """A communicator on the engine's workers, or those with the addresses `workers_at`, or on as many of them as
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
