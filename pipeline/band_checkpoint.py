"""How far banding has come, kept now and then: the ledger, the state of every partition, the mail under way."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from ..tasks.bound.band import KeptBands, Order, keep_bands
from ..tasks.storing import StoredFile, restore, store
from ..tasks.subgraph import Subgraph
from .checkpoint import Checkpoint, Graph
from .engine import Engine, Future
from .ledger import Ledger
from .manifest import ExchangeRecord
from .rounds import Outcome, Round
from .telemetry import Events

__all__ = ["BandKeeper", "Banding"]

_NAME = "bands"


@dataclass
class Banding:
    """Banding between two exchanges."""

    ledger: Ledger
    round: Round
    batches: list[list[list[Order]]]
    """[partitions] batches of orders that it has not carried out."""
    orders: list[Order]
    """The newest batch, which nobody has carried out."""
    exchanges: int = 0
    evaluations: int = 0


class BandKeeper:
    """Keeps the banding of one graph in a checkpoint."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, engine: Engine, events: Events) -> None:
        self._checkpoint, self._graph, self._engine, self._events = checkpoint, graph, engine, events

    def due(self, exchanges: int) -> bool:
        """Whether it is time to keep what so many exchanges have come to."""
        every = self._checkpoint.settings.every_exchanges
        return self._checkpoint.due() or (every is not None and exchanges % every == 0)

    def save(self, banding: Banding) -> None:
        """Keep it, and go on from what was kept: so Dask may forget all that led there."""
        if self._checkpoint.graph is None:
            self._checkpoint.save_graph(self._engine, self._events, self._graph)
        now, subgraphs = banding.round, self._graph.subgraphs
        index = self._checkpoint.save(
            self._engine,
            _NAME,
            {_NAME: [(s, now.states[p], p in now.mailed) for p, s in enumerate(subgraphs)]},
            _store,
            {
                "made_of": {"graph": self._checkpoint.graph},
                "ledger": banding.ledger.as_json(),
                "mailed": [[p, list(rows.items())] for p, rows in now.mailed.items()],
                "batches": [[[asdict(order) for order in batch] for batch in own] for own in banding.batches],
                "orders": [asdict(order) for order in banding.orders],
                "evaluations": banding.evaluations,
                "exchanges": [record.model_dump() for record in self._events.exchanges],
            },
            keep_before=True,
        )
        states = self._restored(self._engine, index["files"], self._checkpoint.options)
        banding.round = Round(self._engine, "band", states[_NAME], now.mailed)
        self._events.emit("kept", exchange=banding.exchanges)

    def load(self) -> Banding | None:
        """What an earlier run of the same graph has kept."""
        made_of = {"graph": self._checkpoint.graph}
        if made_of["graph"] is None:
            return None
        found = self._checkpoint.load(
            self._engine, self._events, _NAME, lambda index: self._checkpoint.check(index, made_of), self._restored
        )
        if found is None:
            return None
        facts, futures = found
        self._events.exchanges[:] = [ExchangeRecord(**record) for record in facts["exchanges"]]
        return Banding(
            Ledger.resumed(facts["ledger"]),
            Round(self._engine, "band", futures[_NAME], {p: dict(rows) for p, rows in facts["mailed"]}),
            [[[Order(**order) for order in batch] for batch in own] for own in facts["batches"]],
            [Order(**order) for order in facts["orders"]],
            len(self._events.exchanges),
            facts["evaluations"],
        )

    def _restored(
        self, engine: Engine, files: Mapping[str, Any], options: Mapping[str, Any]
    ) -> dict[str, list[Future]]:
        own = zip(files[_NAME], self._graph.subgraphs, strict=True)
        return {_NAME: engine.map("bands", _restore, [(StoredFile(**file), options, s) for file, s in own])}


def _store(url: str, options: Mapping[str, Any], subgraph: Subgraph, outcome: Outcome, with_mail: bool) -> StoredFile:
    return store(keep_bands(subgraph, outcome.state, outcome.mail.parts if with_mail else {}), url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any], subgraph: Subgraph) -> Outcome:
    kept: KeptBands = restore(stored, options)
    return Outcome(*kept.bands(subgraph), None)
