"""What is kept of the vertex programs of a run: in memory over its attempts, and in its checkpoint over runs.

A finished program is kept as its columns in buckets, and a running one as the state of its vertices in groups. Each
program has an index of its own in the checkpoint, which refers to the checkpoint of the graph.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import version
from typing import Any

from pydantic import ValidationError

from ...tasks.errors import StateLost
from ...tasks.storage.array_files import StoredFile
from ..checkpoint.checkpoint import Checkpoint, Graph, read_again
from ..cluster.engine import Engine, Future
from ..events import Events
from ..output.manifest import ProgramRecord


@dataclass(frozen=True)
class Finished:
    """A program that has finished."""

    columns: list[Future]
    """[buckets] NamedColumns"""
    record: ProgramRecord


@dataclass(frozen=True)
class Paused:
    """A program after some supersteps."""

    states: list[Future]
    """[groups] ProgramOutcome"""
    supersteps: int
    seconds: float
    """Time that it has run."""


class KeptPrograms:
    """The programs of one run that are kept. `graph` is the graph that the checkpoint has, or will have."""

    def __init__(self, checkpoint: Checkpoint, graph: Graph, engine: Engine, events: Events) -> None:
        self._checkpoint, self._graph, self._engine, self._events = checkpoint, graph, engine, events
        self._finished: dict[str, Finished] = {}
        self.stop_seconds = 0.0
        """What it takes to stop a program and to start it again."""
        self.progress = 0
        """Number of programs that have finished, and of saves."""

    def seconds_left(self, name: str) -> float | None:
        """Seconds until the program `name` is to be saved; None if it never is."""
        return self._checkpoint.seconds_left(self._events, _index(name), self.stop_seconds)

    def finished(self, name: str, parameters: Mapping[str, Any]) -> Finished | None:
        """The program `name` with these parameters, if it has finished in this run or in an interrupted one."""
        known = self._finished.get(name)
        if known is not None:
            try:
                self._engine.wait(known.columns)
                return known
            except StateLost as error:
                error.__traceback__ = None  # Dask keeps the error, and its frames would keep the futures
                del self._finished[name]
        found = self._load(name, parameters, "columns")
        if found is None:
            return None
        facts, columns = found
        try:
            self._finished[name] = Finished(columns, ProgramRecord.model_validate(facts["record"]))
        except (LookupError, ValidationError) as error:
            self._refuse(name, error)
            return None
        return self._finished[name]

    def paused(self, name: str, parameters: Mapping[str, Any], groups: int) -> Paused | None:
        """The program `name` with these parameters, if it was interrupted while it ran in `groups` groups."""
        found = self._load(name, parameters, "states")
        if found is None or len(found[1]) != groups:
            return None
        facts, states = found
        try:
            return Paused(states, int(facts["supersteps"]), float(facts["seconds"]))
        except (LookupError, TypeError, ValueError, OverflowError) as error:
            self._refuse(name, error)
            return None

    def finish(
        self, name: str, parameters: Mapping[str, Any], columns: list[Future], record: ProgramRecord
    ) -> Finished:
        """Keep a program that has finished, and save it if a save is due."""
        self.progress += 1
        if self._checkpoint.due(self._events, _index(name)):
            facts = {"record": record.model_dump(mode="json")}
            columns = self._save(name, parameters, "columns", columns, facts)
        self._finished[name] = Finished(columns, record)
        return self._finished[name]

    def pause(self, name: str, parameters: Mapping[str, Any], paused: Paused) -> Paused:
        """Save a program that is running, in place of its earlier state, if a save is due."""
        if not self._checkpoint.due(self._events, _index(name), self.stop_seconds):
            return paused
        facts = {"supersteps": paused.supersteps, "seconds": paused.seconds}
        states = self._save(name, parameters, "states", paused.states, facts, self.stop_seconds)
        return replace(paused, states=states)

    def _load(
        self, name: str, parameters: Mapping[str, Any], kind: str
    ) -> tuple[Mapping[str, Any], list[Future]] | None:
        if self._checkpoint.graph is None:
            return None
        found = self._checkpoint.load(
            self._engine,
            self._events,
            _index(name),
            lambda index: self._checkpoint.check(index, self._made_of(name, parameters)),
            self._restored,
        )
        if found is None or kind not in found[1]:
            return None
        return found[0], found[1][kind]

    def _save(
        self,
        name: str,
        parameters: Mapping[str, Any],
        kind: str,
        futures: Sequence[Future],
        facts: Mapping[str, Any],
        stopped: float = 0.0,
    ) -> list[Future]:
        """Save the results. Returns futures of the same results: a lost one is read from the checkpoint."""
        with self._checkpoint.saving(_index(name), stopped):
            return self._saved(name, parameters, kind, futures, facts)

    def _saved(
        self, name: str, parameters: Mapping[str, Any], kind: str, futures: Sequence[Future], facts: Mapping[str, Any]
    ) -> list[Future]:
        if self._checkpoint.graph is None:
            self._checkpoint.save_graph(self._engine, self._events, self._graph)
        made_of = self._made_of(name, parameters)
        index = self._checkpoint.save(
            self._engine,
            _index(name),
            {kind: [(future,) for future in futures]},
            _store,
            {"made_of": made_of, **facts},
            keep_before=True,
        )
        self.progress += 1
        self._events.emit("kept", program=name)
        kept = [(StoredFile(**file), self._checkpoint.options, _restore) for file in index["files"][kind]]
        return self._engine.cut_lineage("program-kept", futures, read_again, kept)

    def _restored(self, engine: Engine, index: Mapping[str, Any]) -> dict[str, list[Future]]:
        return {
            kind: engine.map(
                f"restore-{kind}",
                _restore,
                [(StoredFile(**file), self._checkpoint.options) for file in own],
            )
            for kind, own in index["files"].items()
        }

    def _made_of(self, name: str, parameters: Mapping[str, Any]) -> dict[str, Any]:
        release = version("edgemill")
        chosen = {f"choice of parameters of {name}": dict(parameters)}
        return {"graph": self._checkpoint.graph, "release of edgemill": release} | chosen

    def _refuse(self, name: str, error: Exception) -> None:
        self._checkpoint.refuse(
            self._events, f"the checkpoint {self._checkpoint.place} is damaged: {_index(name)}.json: {error!r}"
        )


def _index(name: str) -> str:
    """Name of the index of a program in a checkpoint."""
    return f"program-{name}"


def _store(url: str, options: Mapping[str, Any], value: Any) -> StoredFile:
    from ...tasks.checkpoint_values import store  # imports kernels

    return store(value, url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    from ...tasks.checkpoint_values import restore

    return restore(stored, options)
