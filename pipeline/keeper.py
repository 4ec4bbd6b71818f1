"""How far the search for λ has come, kept now and then: the state of every partition, the mail under way, what the
driver knows. The same for every schedule.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ..tasks.storing import StoredFile, restore, store
from ..tasks.subgraph import Subgraph
from .checkpoint import Checkpoint, Graph, read_again
from .engine import Engine, Future
from .exchange import stamp
from .manifest import ExchangeRecord
from .rounds import Outcome, Round
from .telemetry import Events

__all__ = ["Keeper"]

_NAME = "progress"


class Keeper:
    """Keeps the search in one graph in a checkpoint. `how` names what else must be the same to go on with it."""

    def __init__(
        self, checkpoint: Checkpoint, graph: Graph, engine: Engine, events: Events, how: Mapping[str, Any]
    ) -> None:
        self._checkpoint, self._graph, self._engine, self._events = checkpoint, graph, engine, events
        self._how = how
        self.saves = 0
        """How often it has kept the search."""

    def due(self, exchanges: int) -> bool:
        """Whether it is time to keep what so many exchanges have come to."""
        every = self._checkpoint.settings.every_exchanges
        return self._checkpoint.due() or bool(exchanges and every is not None and exchanges % every == 0)

    @property
    def seconds_left(self) -> float | None:
        """How long one task may take until it is time; None for as long as it takes."""
        return self._checkpoint.seconds_left

    def save(self, now: Round, facts: Mapping[str, Any], reached: Mapping[str, int]) -> Round:
        """Keep it, with how far it has `reached`; gives the round to go on from: Dask forgets all that led there."""
        if self._checkpoint.graph is None:
            self._checkpoint.save_graph(self._engine, self._events, self._graph)
        subgraphs = self._graph.subgraphs
        index = self._checkpoint.save(
            self._engine,
            _NAME,
            {"states": [(s, now.states[p], p in now.mailed) for p, s in enumerate(subgraphs)]},
            _store,
            {
                "made_of": self._made_of,
                "search": facts,
                "reached": reached,
                "number": now.number,
                "mailed": [[p, list(rows.items())] for p, rows in now.mailed.items()],
                "exchanges": [asdict(record) for record in self._events.exchanges],
            },
            keep_before=True,
        )
        kept = self._files(index["files"], now.stamp)
        states = self._engine.detach(f"{now.name}-kept", now.states, _read_again, kept)
        self.saves += 1
        self._events.emit("kept", **reached)
        return Round(self._engine, now.name, states, now.mailed, now.number)

    def load(self, name: str) -> tuple[Mapping[str, Any], Round] | None:
        """What an earlier run has kept of the same search: the facts, and the round, to be called `name`."""
        if self._checkpoint.graph is None:
            return None
        found = self._checkpoint.load(
            self._engine,
            self._events,
            _NAME,
            lambda index: self._checkpoint.check(index, self._made_of),
            lambda index: self._restored(index, name),
        )
        if found is None:
            return None
        facts, futures = found
        try:
            exchanges = [ExchangeRecord(**record) for record in facts["exchanges"]]
            mailed = {p: dict(rows) for p, rows in facts["mailed"]}
            search, restored = facts["search"], Round(self._engine, name, futures["states"], mailed, facts["number"])
        except (LookupError, TypeError, ValueError) as error:
            reason = f"the checkpoint {self._checkpoint.place} is damaged: {_NAME}.json: {error!r}"
            self._checkpoint.refuse(self._events, reason)
            return None
        self._events.exchanges[:] = exchanges
        return search, restored

    @property
    def _made_of(self) -> dict[str, Any]:
        return {"graph": self._checkpoint.graph, **self._how}

    def _files(self, files: Mapping[str, Any], stamp: str) -> list[tuple[Any, ...]]:
        own = zip(files["states"], self._graph.subgraphs, strict=True)
        return [(StoredFile(**file), self._checkpoint.options, subgraph, stamp) for file, subgraph in own]

    def _restored(self, index: Mapping[str, Any], name: str) -> dict[str, list[Future]]:
        files = self._files(index["files"], stamp(self._engine, f"{name} {index['number']}"))
        return {"states": self._engine.map("restore-states", _restore, files, self._engine.homes)}


def _store(url: str, options: Mapping[str, Any], subgraph: Subgraph, outcome: Outcome, with_mail: bool) -> StoredFile:
    return store(outcome.state.kept(subgraph, outcome.mail.parts if with_mail else {}), url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any], subgraph: Subgraph, stamp: str) -> Outcome:
    return _resumed(restore(stored, options), subgraph, stamp)


def _read_again(stored: StoredFile, options: Mapping[str, Any], subgraph: Subgraph, stamp: str) -> Outcome:
    return _resumed(read_again(stored, options), subgraph, stamp)


def _resumed(kept: Any, subgraph: Subgraph, stamp: str) -> Outcome:
    state, mail = kept.resumed(subgraph)
    return Outcome(state, replace(mail, stamp=stamp), None)
