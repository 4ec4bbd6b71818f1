"""Checkpoints of bounding: the state of every partition, and the driver's. They are the same for all schedules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from ...tasks.storage.array_files import StoredFile
from ..checkpoint.checkpoint import Checkpoint, Graph, read_again
from ..cluster.engine import Engine, Future
from ..monitor.events import Events
from ..output.manifest import ExchangeRecord

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

    def exchanges_left(self, exchanges: int) -> int | None:
        """Exchanges until the next checkpoint is due, after so many; None for no limit."""
        every = self._checkpoint.settings.every_exchanges
        return None if every is None else every - exchanges % every

    @property
    def seconds_left(self) -> float | None:
        """Seconds until the next checkpoint is due; None for no limit."""
        return self._checkpoint.seconds_left(self._events, _NAME, self.stop_seconds)

    def save(self, states: list[Future], facts: Mapping[str, Any], reached: Mapping[str, int]) -> list[Future]:
        """Save a checkpoint, with the progress `reached`. Gives the states to continue with, whose lineage is cut: lost
        ones are read from the checkpoint.
        """
        with self._checkpoint.saving(_NAME, self.stop_seconds):
            if self._checkpoint.graph is None:
                self._checkpoint.save_graph(self._engine, self._events, self._graph)
                if self._in_parts:
                    self._graph.buckets.move_to_host(self._engine)
            index = self._checkpoint.save(
                self._engine,
                _NAME,
                {"states": [(state,) for state in states]},
                _store,
                {
                    "made_of": self._made_of,
                    "search": facts,
                    "reached": reached,
                    "exchanges": [asdict(record) for record in self._events.exchanges],
                },
                keep_before=True,
            )
            states = self._engine.cut_lineage("states-kept", states, _read_again, self._files(index))
        self.saves += 1
        self._events.emit("kept", **reached)
        return states

    def load(self) -> tuple[Mapping[str, Any], list[Future]] | None:
        """The facts and the states of an earlier run with the same graph and `how`; None if it left none."""
        if self._checkpoint.graph is None:
            return None
        found = self._checkpoint.load(
            self._engine,
            self._events,
            _NAME,
            lambda index: self._checkpoint.check(index, self._made_of),
            self._restored,
        )
        if found is None:
            return None
        facts, futures = found
        try:
            exchanges = [ExchangeRecord(**record) for record in facts["exchanges"]]
            search, states = facts["search"], futures["states"]
        except (LookupError, TypeError, ValueError) as error:
            reason = f"the checkpoint {self._checkpoint.place} is damaged: {_NAME}.json: {error!r}"
            self._checkpoint.refuse(self._events, reason)
            return None
        self._events.exchanges[:] = exchanges
        return search, states

    @property
    def _made_of(self) -> dict[str, Any]:
        return {"graph": self._checkpoint.graph, **self._how}

    def _files(self, index: Mapping[str, Any]) -> list[tuple[Any, ...]]:
        return [(StoredFile(**file), self._checkpoint.options) for file in index["files"]["states"]]

    def _restored(self, engine: Engine, index: Mapping[str, Any]) -> dict[str, list[Future]]:
        return {"states": engine.map("restore-states", _restore, self._files(index), engine.partition_workers)}


def _store(url: str, options: Mapping[str, Any], state: Any) -> StoredFile:
    from ...tasks.bounding_values import store  # imports shards and their kernels

    return store(getattr(state, "kept", state), url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    from ...tasks.bounding_values import restore

    return restore(stored, options)


def _read_again(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    return read_again(stored, options, _restore)
