"""Checkpoints of bounding: the state of every partition, the mail between two exchanges, and the driver's state.

They are the same for all schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from typing import Any

from ...tasks.graph.subgraph import Subgraph
from ...tasks.storage.array_files import StoredFile
from ..checkpoint.checkpoint import Checkpoint, Graph, read_again
from ..cluster.engine import Engine, Future
from ..monitor.events import Events
from ..output.manifest import ExchangeRecord
from ..stages.exchange import stamp
from .rounds import Outcome, Round

_NAME = "progress"


class BoundingCheckpoint:
    """Stores the bounding of one graph in a checkpoint. To resume, the values of `how` must be the same, too.

    With `in_parts` the edges of the buckets are in host memory while the graph is bounded.
    """

    def __init__(
        self,
        checkpoint: Checkpoint,
        graph: Graph,
        engine: Engine,
        events: Events,
        how: Mapping[str, Any],
        in_parts: bool = False,
    ) -> None:
        self._checkpoint, self._graph, self._engine, self._events = checkpoint, graph, engine, events
        self._how, self._in_parts = how, in_parts
        self.stop_seconds = 0.0
        """What it takes to stop the search and to start it again."""
        self.saves = 0
        """Number of checkpoints that were saved."""

    def due(self, exchanges: int) -> bool:
        """Whether to save a checkpoint after this number of exchanges."""
        every = self._checkpoint.settings.every_exchanges
        left = self.seconds_left
        return (left is not None and left <= 0) or bool(exchanges and every is not None and exchanges % every == 0)

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the next checkpoint is due; None for no limit."""
        return self._checkpoint.seconds_left(self._events, _NAME, self.stop_seconds)

    def save(self, round_: Round, facts: Mapping[str, Any], reached: Mapping[str, int]) -> Round:
        """Save a checkpoint, with the progress `reached`. Gives the round to continue with, whose lineage is cut: lost
        states are read from the checkpoint.
        """
        with self._checkpoint.saving(_NAME, self.stop_seconds):
            if self._checkpoint.graph is None:
                self._checkpoint.save_graph(self._engine, self._events, self._graph)
                if self._in_parts:
                    self._graph.buckets.move_to_host(self._engine)
            subgraphs = self._graph.subgraphs
            index = self._checkpoint.save(
                self._engine,
                _NAME,
                {"states": [(s, round_.states[p], p in round_.mailed) for p, s in enumerate(subgraphs)]},
                _store,
                {
                    "made_of": self._made_of,
                    "search": facts,
                    "reached": reached,
                    "number": round_.number,
                    "mailed": [[p, list(rows.items())] for p, rows in round_.mailed.items()],
                    "exchanges": [asdict(record) for record in self._events.exchanges],
                },
                keep_before=True,
            )
            kept = self._files(index["files"], round_.stamp)
            states = self._engine.cut_lineage(f"{round_.name}-kept", round_.states, _read_again, kept)
        self.saves += 1
        self._events.emit("kept", **reached)
        return Round(self._engine, round_.name, states, round_.mailed, round_.number)

    def load(self, name: str) -> tuple[Mapping[str, Any], Round] | None:
        """The facts and the round of an earlier run with the same graph and `how`; None if it left none. Tasks of the
        round are called `name`.
        """
        if self._checkpoint.graph is None:
            return None
        found = self._checkpoint.load(
            self._engine,
            self._events,
            _NAME,
            lambda index: self._checkpoint.check(index, self._made_of),
            lambda engine, index: self._restored(engine, index, name),
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

    def _restored(self, engine: Engine, index: Mapping[str, Any], name: str) -> dict[str, list[Future]]:
        files = self._files(index["files"], stamp(self._engine, f"{name} {index['number']}"))
        return {"states": engine.map("restore-states", _restore, files, engine.partition_workers)}


def _store(url: str, options: Mapping[str, Any], subgraph: Subgraph, outcome: Outcome, with_mail: bool) -> StoredFile:
    from ...tasks.bounding_values import store  # imports shards and their kernels

    return store(outcome.state.kept(subgraph, outcome.mail.parts if with_mail else {}), url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any], subgraph: Subgraph, stamp: str) -> Outcome:
    from ...tasks.bounding_values import restore

    return _resumed(restore(stored, options), subgraph, stamp)


def _read_again(stored: StoredFile, options: Mapping[str, Any], subgraph: Subgraph, stamp: str) -> Outcome:
    from ...tasks.bounding_values import restore

    return _resumed(read_again(stored, options, restore), subgraph, stamp)


def _resumed(kept: Any, subgraph: Subgraph, stamp: str) -> Outcome:
    state, mail = kept.resumed(subgraph)
    return Outcome(state, replace(mail, stamp=stamp), None)
