"""What a run keeps on its way to λ, so that one that is ended goes on from there.

A checkpoint is a folder: files of tasks/storing.py, one for each bucket and partition, and an index, written last,
which bears its own SHA-256, names them with theirs and says what they were made of: edges.json or owned.json of
kept_edges.py, then graph.json, and progress.json of keeper.py.
One of another input or other settings, a damaged one and one of a newer format are not used, and the reason is told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np

from ..tasks.errors import ClusterLost, UsageError
from ..tasks.passwords import without_passwords
from ..tasks.places import Place, place_of
from ..tasks.sources import Source
from ..tasks.storing import DamagedFile, StoredFile, restore, store
from ..tasks.subgraph import PartitionCounts
from .checkpoint_files import files_at
from .checkpoint_index import Index, checked, checkpoint_place, opened, seal
from .engine import Engine, Future
from .plan import Plan
from .settings import CheckpointSettings, Settings
from .stages import Buckets, Partitions, RowCounts
from .telemetry import Events, Stage

__all__ = ["Checkpoint", "Graph", "edges_of", "facts_of", "read_again"]

FORMAT_VERSION = 6

T = TypeVar("T")


@dataclass(frozen=True)
class Graph:
    """All that finding λ and publishing it need."""

    rows: RowCounts
    buckets: Buckets
    partitions: Partitions
    subgraphs: list[Future]
    """[partitions] Subgraph, or ShardEdges"""
    counts: list[PartitionCounts]
    supports: list[Future]
    """[buckets] BucketSupports of a graph in shards; none of others"""


class Checkpoint:
    """The checkpoint of one output. `out` is where the result will be."""

    def __init__(self, settings: Settings, source: Source, plan: Plan, out: Place | Path) -> None:
        self.settings: CheckpointSettings = settings.checkpoint
        out = place_of(out)
        self.place = checkpoint_place(out, self.settings.path)
        self.options = out.options if self.settings.path is None else self.settings.storage_options
        self._files = files_at(self.place, self.options)
        self._made_of = _made_of(settings, source, plan)
        self._saved, self._saves = time.monotonic(), 0
        self._kept = self._restored = False
        self.graph: str | None = None
        """What the graph that is kept is called; None for none."""

    def due(self) -> bool:
        """Whether so much has been done since the last time that it is worth keeping."""
        left = self.seconds_left
        return left is not None and left <= 0

    @property
    def seconds_left(self) -> float | None:
        """Until it is; None for never."""
        every = self.settings.every_seconds
        return None if every is None else every - (time.monotonic() - self._saved)

    @property
    def note(self) -> str | None:
        """What to tell the user when the run fails; None if nothing is kept."""
        place = without_passwords(self.place)
        if self._kept:
            return f"what was found is kept in {place}: the same run goes on from there"
        if self._restored:
            return f"nothing more is kept than what an earlier run left in {place}: the same run goes on from there"
        return None

    def load_graph(self, engine: Engine, events: Events) -> Graph | None:
        """The graph that an earlier run has kept; None if there is none, or none to use."""

        def graph_of(facts: Mapping[str, Any], futures: Mapping[str, list[Future]]) -> Graph:
            rows, buckets = edges_of(facts, futures)
            counts = [PartitionCounts(**counts) for counts in facts["counts"]]
            partitions = Partitions(futures["rows"], futures["degrees"])
            self.graph = facts["folder"]
            return Graph(rows, buckets, partitions, futures["subgraphs"], counts, futures.get("supports", []))

        return self.load_step(engine, events, "graph", graph_of)

    def refuse(self, events: Events, reason: str) -> None:
        """Tell why what was kept is not used."""
        events.emit("checkpoint_refused", reason=without_passwords(reason))

    def save_graph(self, engine: Engine, events: Events, graph: Graph) -> None:
        """Keep a graph, in place of all that is kept.

        Its futures are replaced by others that hold the same and, when a worker is lost, read what is kept: the input
        is read no more.
        """
        parts: dict[str, list[Future]] = {
            "ids": graph.buckets.ids,
            "edges": graph.buckets.edges,
            "degrees": graph.partitions.degrees,
            "rows": graph.partitions.rows,
            "subgraphs": graph.subgraphs,
        }
        if graph.supports:
            parts["supports"] = graph.supports
        facts = facts_of(graph.rows, graph.buckets) | {"counts": [asdict(counts) for counts in graph.counts]}
        self.graph = self.save_step(engine, events, "graph", parts, facts)

    def load_step(
        self,
        engine: Engine,
        events: Events,
        name: str,
        make: Callable[[Mapping[str, Any], Mapping[str, list[Future]]], T],
    ) -> T | None:
        """What `make` makes of the facts and parts that an earlier run has kept as `name`.

        None if there are none to use.
        """
        self._files.check()
        found = self.load(
            engine,
            events,
            name,
            lambda index: self.check(index, self._made_of),
            lambda index: _restore_parts(engine, index["files"], self.options),
        )
        if found is None:
            return None
        try:
            return make(*found)
        except (LookupError, TypeError, ValueError) as error:
            self.refuse(events, f"the checkpoint {self.place} is damaged: {name}.json: {error!r}")
            return None

    def save_step(
        self,
        engine: Engine,
        events: Events,
        name: str,
        parts: Mapping[str, list[Future]],
        facts: Mapping[str, Any],
    ) -> str:
        """Keep lists of futures and facts as `name`, in place of all that is kept; gives the folder of the files.

        The futures are replaced as `save_graph` says.
        """
        facts = {"made_of": self._made_of, **facts}
        before = self._files.names()
        with events.stage("keep", sum(map(len, parts.values()))) as stage:
            arguments = {kind: [(future,) for future in futures] for kind, futures in parts.items()}
            index = self.save(engine, name, arguments, _store, facts, stage=stage)
            with engine.on_device():
                for kind, futures in parts.items():
                    kept = [(StoredFile(**file), self.options) for file in index["files"][kind]]
                    futures[:] = engine.detach(f"kept-{kind}", futures, read_again, kept)
        for earlier in before:
            if earlier != f"{name}.json":
                self._files.remove(earlier)
        folder: str = index["folder"]
        return folder

    def save(
        self,
        engine: Engine,
        name: str,
        parts: Mapping[str, Sequence[Sequence[Any]]],
        function: Callable[..., StoredFile],
        facts: Mapping[str, Any],
        *,
        keep_before: bool = False,
        stage: Stage | None = None,
    ) -> dict[str, Any]:
        """Write `name`: a file by the task `function(url, options, *own)` for each `own` of `parts`, and an index of
        them with what else is to be known, which it gives. With `keep_before`, what had that name stays as
        `name.before` until the next time.
        """
        self._saves += 1
        folder = f"{name}-{engine.run_id}-{self._saves}"
        try:
            self._files.make(folder)
        except OSError as error:
            why = error.strerror or error
            raise UsageError(f"cannot write the checkpoint {self.place}: {why}; set checkpoint.path=…") from error
        tasks = {
            kind: engine.map(
                f"store-{kind}",
                function,
                [(self._url(folder, kind, i), self.options, *own) for i, own in enumerate(arguments)],
            )
            for kind, arguments in parts.items()
        }
        try:
            engine.wait([task for own in tasks.values() for task in own], stage)
            files = {kind: [asdict(file) for file in engine.gather(own)] for kind, own in tasks.items()}
            index = {"format": FORMAT_VERSION, "folder": folder, "files": files, **facts}
            if keep_before:
                self._rotate(name)
            self._files.write(f"{name}.json", seal(index))
        except BaseException:
            self._files.forget(folder)  # half a checkpoint is of no use, and may be what fills the disk
            raise
        self._saved, self._kept = time.monotonic(), True
        return index

    def load(
        self,
        engine: Engine,
        events: Events,
        name: str,
        check: Callable[[Mapping[str, Any]], None],
        start: Callable[[Mapping[str, Any]], dict[str, list[Future]]],
    ) -> tuple[dict[str, Any], dict[str, list[Future]]] | None:
        """The index of what was kept as `name`, or before it, and passes `check`; with the tasks that restore its
        files, which `start(index)` gives.
        """
        for each in (name, f"{name}.before"):
            try:
                index = self._read_index(each)
                if index is None:
                    continue
                check(index)
                with events.stage("restore", sum(map(len, index["files"].values()))) as stage, engine.on_device():
                    futures = start(index)
                    engine.wait([future for own in futures.values() for future in own], stage)
                self._restored = True
                return index, futures
            except DamagedFile as error:
                self.refuse(events, str(error))
                error.__traceback__ = None  # Dask keeps the exception with its task, and the frames would keep the task
        return None

    def clear(self) -> None:
        """Remove it, and what a run that was killed while it wrote one has left. Raises UsageError."""
        try:
            with place_of(self.place, self.options).reached("remove"):
                self._files.clear()
        except OSError as error:
            place = without_passwords(self.place)
            raise UsageError(f"cannot remove the checkpoint {place}: {error.strerror or error}") from error
        self.graph = None
        self._kept = self._restored = False

    def check(self, index: Mapping[str, Any], made_of: Mapping[str, Any]) -> None:
        """Raises DamagedFile if what was kept was made of something else."""
        for name, value in made_of.items():
            if index["made_of"].get(name) != value:
                raise DamagedFile(f"the checkpoint {self.place} was made with another {name}")

    def _read_index(self, name: str) -> Index | None:
        """What NAME.json says; None if there is none. Raises DamagedFile."""
        damaged = f"the checkpoint {self.place} is damaged: {name}.json"
        try:
            content = self._files.read(f"{name}.json")
            if content is None:
                return None
            index = opened(content)
            version = int(index["format"])
            if version != FORMAT_VERSION:
                other = f"{'a newer' if version > FORMAT_VERSION else 'an older'} edgemill (format {version})"
                raise DamagedFile(f"the checkpoint {self.place} was made by {other}")
            index = checked(index)
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise DamagedFile(f"{damaged}: {error}") from error
        for kind, files in index["files"].items():
            if [file["url"] for file in files] != [self._url(index["folder"], kind, i) for i in range(len(files))]:
                raise DamagedFile(f"{damaged} names files elsewhere")
        return index

    def _url(self, folder: str, kind: str, number: int) -> str:
        return self._files.url(folder, f"{kind}-{number}.zip")

    def _rotate(self, name: str) -> None:
        """Make the present index the one before; that goes with its files."""
        now = self._files.read(f"{name}.json")
        if now is None:
            return
        gone = None
        with suppress(DamagedFile):
            gone = self._read_index(f"{name}.before")
        self._files.write(f"{name}.before.json", now)
        if gone is not None:
            self._files.remove(gone["folder"])


def facts_of(rows: RowCounts, buckets: Buckets) -> dict[str, Any]:
    """What is to be known of edges in buckets, beside the files of their ids and edges, as JSON values."""
    return {"rows": asdict(rows), "starts": buckets.starts.tolist(), "duplicates": buckets.duplicates}


def edges_of(facts: Mapping[str, Any], futures: Mapping[str, list[Future]]) -> tuple[RowCounts, Buckets]:
    """The edges of these facts and restored files."""
    starts = np.array(facts["starts"], np.int64)
    return RowCounts(**facts["rows"]), Buckets(futures["ids"], futures["edges"], starts, facts["duplicates"])


def _store(url: str, options: Mapping[str, Any], value: Any) -> StoredFile:
    return store(value, url, options)


def read_again(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    """Task: what a worker held that is lost, as this run has kept it. Raises ClusterLost if that is damaged."""
    try:
        return restore(stored, options)
    except DamagedFile as error:
        raise ClusterLost(f"a worker is lost, and what was kept of its results too: {error}; run again") from error


def _restore_parts(engine: Engine, files: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, list[Future]]:
    return {
        kind: engine.map(
            f"restore-{kind}",
            restore,
            [(StoredFile(**file), options) for file in own],
            engine.homes if kind in ("rows", "owned", "subgraphs") else None,
        )
        for kind, own in files.items()
    }


def _made_of(settings: Settings, source: Source, plan: Plan) -> dict[str, Any]:
    """What must be the same for a checkpoint to be of use, as JSON values, by what to call them."""
    return {
        "input": _files(source),
        "choice of columns": [source.source_column, source.target_column, str(source.id_type)],
        "input.nulls": settings.input.nulls,
        "input.where": settings.input.where,
        "input.bipartite": settings.input.bipartite,
        "input.directed": settings.input.directed,
        "layout of the input": None if source.layout is None else source.layout.facts(),
        "partitioning.method": plan.partitioning,
        "number of partitions": plan.partitions,
        "number of shards": plan.shards,
        "number of buckets": plan.buckets,
        "device": "gpu" if plan.capacity.device_bytes else "cpu",
        "place of its edges": "gpu" if plan.ingest_on_device else "host",
    }


def _files(source: Source) -> list[list[Any]]:
    """What tells the files from what they were before, as JSON values. A file of no known version is like no other."""
    if source.frame is not None:
        return [[digest] for digest in source.frame.sha256]
    return [[file.path, file.bytes, list(file.row_groups), file.version or uuid4().hex] for file in source.files]
