"""Where the groups of shards of one peeling meet: what carries between them, and how their tasks open it."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Self

from distributed import get_worker

from ..tasks.shards import Carrier, MemoryCarrier
from .carrier_choice import CarrierChoice, CarrierSetting, carrier_for, open_carrier
from .engine import Engine

__all__ = ["Meeting"]

_OPENING_SECONDS = 60.0
"""How long groups wait for each other, from the start of the first one's task."""


@dataclass(frozen=True)
class Meeting:
    """What the tasks of one peeling are told. Worker w holds the groups w, w + workers, w + 2 workers, …"""

    name: str
    """Of no other peeling."""
    choice: CarrierChoice
    groups: int

    @classmethod
    def of(cls, engine: Engine, groups: int, setting: CarrierSetting) -> Self:
        """Meet on the engine's workers, or on as many as there are groups. Raises as `carrier_for` does."""
        # A name of its own each time: a group that was taken for lost must not meet those that peel in its place.
        engine.meetings += 1
        name = f"{engine.run_id}-{engine.meetings}"
        choice = carrier_for(engine, setting)
        workers = min(len(choice.addresses), groups)
        addresses = tuple(choice.addresses[group % workers] for group in range(groups))
        kind = "memory" if workers == 1 else choice.kind
        return cls(name, replace(choice, kind=kind, addresses=addresses), groups)

    @property
    def workers(self) -> int:
        """Workers that hold groups."""
        return len(set(self.choice.addresses))

    def held_by(self, worker: int) -> range:
        """The groups of one worker."""
        return range(worker, self.groups, self.workers)

    @contextmanager
    def carriers_of(self, worker: int) -> Iterator[list[Carrier]]:
        """Task: the carriers of a worker's groups, once they have met all others. Raises ClusterLost."""
        held = self.held_by(worker)
        if self.choice.kind == "memory":
            yield list(MemoryCarrier.open(self.groups))
            return
        carriers: list[Carrier] = []
        try:
            with ThreadPoolExecutor(len(held)) as pool:
                opening = [
                    pool.submit(open_carrier, get_worker(), self.choice, self.name, g, _OPENING_SECONDS) for g in held
                ]
            carriers += [future.result() for future in opening if future.exception() is None]
            for future in opening:
                future.result()
            yield carriers
        finally:
            for carrier in carriers:
                carrier.close()
