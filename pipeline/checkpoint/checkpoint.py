"""The checkpoint of a run, from which the same run resumes after an interruption.

A checkpoint is a folder with files of `tasks.checkpoint_values`, one for each bucket and partition, and an index. The
index is written last. It has its own SHA-256, those of the files, and the values they were made of. Its name is
edges.json or owned.json for edges, graph.json for the graph, and progress.json for the state of bounding. A run does
not use a checkpoint of another input, of other settings, of a newer format or with damage, and reports the reason.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Sized
from contextlib import contextmanager, suppress
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4

import numpy as np
from pydantic import TypeAdapter

from ...tasks.errors import ClusterLost
from ...tasks.graph import PartitionCounts
from ...tasks.ingest.numbering import BucketEdges
from ...tasks.inputs.sources import Source, SourceFile
from ...tasks.storage.array_files import DamagedFile, StoredFile, checkpoint_errors
from ...tasks.storage.folders import Folder, folder_at
from ...tasks.storage.passwords import without_passwords
from ..cluster.engine import Engine, Future
from ..events import Events, Stage
from ..output.checkpoint_files import Index, checked, checkpoint_place, clear_files, files_at, opened, seal
from ..settings.models import CheckpointSettings, Settings
from ..stages.ingesting import Buckets, RowCounts
from ..stages.publishing import Partitions
from ..stages.task_engine import TaskEngine

FORMAT_VERSION = 7
MOST_SHARE = 0.1
"""Most of a run's time that its checkpoints may take."""
_BYTES_A_SECOND = 200_000_000
"""What each worker is taken to write before a checkpoint has shown how fast it is."""

T = TypeVar("T")
E = TypeVar("E", bound=TaskEngine)


@dataclass(frozen=True)
class Graph:
    """The graph in buckets and partitions, for bounding and publishing."""

    rows: RowCounts
    buckets: Buckets
    partitions: Partitions
    subgraphs: list[Future]
    """[partitions] Subgraph, or ShardEdges"""
    counts: list[PartitionCounts]
    supports: list[Future]
    """[buckets] BucketSupports of a graph in shards; empty for partitions"""


class _Costs:
    """The seconds that the checkpoints of a run take, which bound how often one is made."""

    def __init__(self, expected_bytes: int, workers: int) -> None:
        """A checkpoint of everything has about `expected_bytes`, which the workers write."""
        self._bytes, self._workers = expected_bytes, workers
        self._began = time.monotonic()
        self._own: dict[str, float] = {}
        """Name of what was saved → the seconds that the last save took"""
        self.spent, self.written = 0.0, 0
        """Seconds and bytes of all saves."""

    @contextmanager
    def saving(self, name: str, stopped: float) -> Iterator[None]:
        """The block saves `name`. For this, work stopped and starts again, which takes the seconds `stopped`."""
        start, before = time.monotonic(), self.spent
        yield
        passed, within = time.monotonic() - start, self.spent - before
        self._own[name] = passed - within
        self.spent = before + passed + stopped

    def of(self, name: str) -> float:
        """The seconds that the next save of `name` will take."""
        known = self._own.get(name)
        if known is not None:
            return known
        speed = self.written / self.spent if self.written and self.spent else _BYTES_A_SECOND * self._workers
        return self._bytes / speed

    def seconds_left(self, cost: float) -> float:
        """Seconds until checkpoints, with one that takes `cost` seconds, take no more than their share of the time."""
        return (self.spent + cost) / MOST_SHARE - (time.monotonic() - self._began)


class Checkpoint:
    """The checkpoint of one output. `out` is the folder of the result.

    A checkpoint can be used if it was made of the values `made_of`. These are JSON values by their names in messages.
    All `workers` together are expected to write `expected_bytes` if they save everything.
    """

    def __init__(
        self,
        settings: CheckpointSettings,
        made_of: Mapping[str, Any],
        out: Folder | Path,
        expected_bytes: int = 0,
        workers: int = 1,
    ) -> None:
        self.settings = settings
        self._costs, self._has_told = _Costs(expected_bytes, workers), False
        out = folder_at(out)
        self.place = checkpoint_place(out, self.settings.path)
        self.options = out.options if self.settings.path is None else self.settings.storage_options
        self._files = files_at(self.place, self.options)
        self._made_of = dict(made_of)
        self._saved, self._saves = time.monotonic(), 0
        self._has_saved = self._has_restored = False
        self.graph: str | None = None
        """Name of the graph in the checkpoint; None if it has none."""

    def due(self, events: Events, name: str, stopped: float = 0.0) -> bool:
        """Whether to save `name` now; see `seconds_left`."""
        left = self.seconds_left(events, name, stopped)
        return left is not None and left <= 0

    def seconds_left(self, events: Events, name: str, stopped: float = 0.0) -> float | None:
        """Seconds until `name` is to be saved; None if it never is. For the save work stops and starts again, which
        takes the seconds `stopped`.

        That is `checkpoint.every_seconds` after the last save, or later if checkpoints would take more than a tenth of
        the run's time, which is told once. With 0 what they take does not count.
        """
        every = self.settings.every_seconds
        if every is None:
            return None
        left = every - (time.monotonic() - self._saved)
        if not every:
            return left
        cost = self._costs.of(name) + stopped
        later = self._costs.seconds_left(cost)
        if later > max(0.0, left) and not self._has_told and (left <= 0 or self._costs.spent):
            self._has_told = True
            events.emit(
                "checkpoints_rarer", every_seconds=every, takes=round(cost, 3), next=round(later, 3), share=MOST_SHARE
            )
        return max(left, later)

    @contextmanager
    def saving(self, name: str, stopped: float = 0.0) -> Iterator[None]:
        """The block saves `name`, and what that takes counts; see `seconds_left`."""
        with self._costs.saving(name, stopped):
            yield
        self._saved = time.monotonic()

    @property
    def note(self) -> str | None:
        """A note for the error of a run that fails; None without a checkpoint."""
        place = without_passwords(self.place)
        if self._has_saved:
            return f"the checkpoint is in {place}: the same command resumes from it"
        if self._has_restored:
            return f"the checkpoint of an earlier run is in {place}: the same command resumes from it"
        return None

    def load_graph(self, engine: Engine, events: Events) -> Graph | None:
        """The graph that an earlier run saved; None without a usable checkpoint."""

        def graph_of(facts: Mapping[str, Any], futures: Mapping[str, list[Future]]) -> Graph:
            rows, buckets = edges_of(engine, facts, futures)
            counts = TypeAdapter(list[PartitionCounts]).validate_python(facts["counts"])
            _refuse_no_counts([count for own in counts for count in astuple(own)])
            partitions = Partitions(futures["rows"], futures["degrees"])
            supports = futures.get("supports", [])
            _refuse_unequal(buckets.edges, partitions.degrees, *([supports] if supports else []))
            _refuse_unequal(partitions.rows, futures["subgraphs"], counts)
            self.graph = facts["folder"]
            return Graph(rows, buckets, partitions, futures["subgraphs"], counts, supports)

        return self.load_step(engine, events, "graph", graph_of)

    def refuse(self, events: Events, reason: str) -> None:
        """Report why a checkpoint is not used."""
        events.emit("checkpoint_refused", reason=without_passwords(reason))

    def save_graph(self, engine: Engine, events: Events, graph: Graph) -> None:
        """Save a graph. It replaces everything saved before.

        New futures with the same results replace those of the graph. If a worker is lost, its results are read from
        the checkpoint, and the input is not read again.
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
        """The result of `make` for the facts and parts that an earlier run saved as `name`.

        None without a usable checkpoint of that name.
        """
        self._files.check()
        found = self.load(
            engine,
            events,
            name,
            lambda index: self.check(index, self._made_of),
            lambda engine, index: _restore_parts(engine, index["files"], self.options),
        )
        if found is None:
            return None
        try:
            return make(*found)
        except (LookupError, TypeError, ValueError, OverflowError) as error:
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
        """Save lists of futures and facts as `name`. They replace everything saved before. Returns the files' folder.

        The futures are replaced, as in `save_graph`.
        """
        facts = {"made_of": self._made_of, **facts}
        outdated = self._files.names()
        with self.saving(name), events.stage("keep", sum(map(len, parts.values()))) as stage:
            arguments = {kind: [(future,) for future in futures] for kind, futures in parts.items()}
            index = self.save(engine, name, arguments, _store, facts, stage=stage)
            holding = engine.for_partitions()
            for kind, futures in parts.items():
                kept = [(StoredFile(**file), self.options) for file in index["files"][kind]]
                futures[:] = holding.cut_lineage(f"kept-{kind}", futures, read_again, kept)
        for file in outdated:
            if file != f"{name}.json":
                self._files.remove(file)
        folder: str = index["folder"]
        return folder

    def save(
        self,
        engine: TaskEngine,
        name: str,
        parts: Mapping[str, Sequence[Sequence[Any]]],
        function: Callable[..., StoredFile],
        facts: Mapping[str, Any],
        *,
        keep_before: bool = False,
        stage: Stage | None = None,
    ) -> dict[str, Any]:
        """Save `parts` and `facts` as `name`. Returns the index.

        For each `own` of `parts`, the task `function(url, options, *own)` writes a file. With `keep_before` the
        previous index of that name remains as `name.before` until the next save.
        """
        self._saves += 1
        folder = f"{name}-{engine.run_id}-{self._saves}"
        with checkpoint_errors(str(self.place)):
            self._files.make(folder)
        try:
            tasks = {
                kind: engine.map(
                    f"store-{kind}",
                    function,
                    [(self._url(folder, kind, i), self.options, *own) for i, own in enumerate(arguments)],
                )
                for kind, arguments in parts.items()
            }
            engine.wait([task for own in tasks.values() for task in own], stage)
            files = {kind: [asdict(file) for file in engine.gather(own)] for kind, own in tasks.items()}
            index = {"format": FORMAT_VERSION, "folder": folder, "files": files, **facts}
            if keep_before:
                self._rotate(name)
            with checkpoint_errors(str(self.place)):
                self._files.write(f"{name}.json", seal(index))
            self._costs.written += sum(file["bytes"] for own in files.values() for file in own)
        except BaseException:
            self._files.forget(folder)  # an incomplete checkpoint is useless and may fill the disk
            raise
        self._saved, self._has_saved = time.monotonic(), True
        return index

    def load(
        self,
        engine: E,
        events: Events,
        name: str,
        check: Callable[[Mapping[str, Any]], None],
        start: Callable[[E, Mapping[str, Any]], dict[str, list[Future]]],
    ) -> tuple[dict[str, Any], dict[str, list[Future]]] | None:
        """The newest index of `name` or `name.before` that passes `check`, and the restored files.

        None if no index passes. `start(engine, index)` starts the tasks that restore the files.
        """
        for each in (name, f"{name}.before"):
            try:
                index = self._read_index(each)
                if index is None:
                    continue
                check(index)
                with events.stage("restore", sum(map(len, index["files"].values()))) as stage:
                    holding = engine.for_partitions()
                    futures = start(holding, index)
                    holding.wait([future for own in futures.values() for future in own], stage)
                self._has_restored = True
                return index, futures
            except DamagedFile as error:
                self.refuse(events, str(error))
                error.__traceback__ = None  # Dask keeps the exception with its task, and the frames would keep the task
        return None

    def clear(self) -> None:
        """Remove the checkpoint, and files that a run left if it was killed during a save. Raises UsageError."""
        clear_files(self.place, self.options)
        self.graph = None
        self._has_saved = self._has_restored = False

    def check(self, index: Mapping[str, Any], made_of: Mapping[str, Any]) -> None:
        """Raises DamagedFile if the index was made of other values than `made_of`."""
        for name, value in made_of.items():
            if index["made_of"].get(name) != value:
                raise DamagedFile(f"the checkpoint {self.place} was made with another {name}")

    def _read_index(self, name: str) -> Index | None:
        """The index NAME.json; None if the file does not exist. Raises DamagedFile."""
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
        except (OSError, ValueError, LookupError, TypeError, OverflowError) as error:
            raise DamagedFile(f"{damaged}: {error}") from error
        for kind, files in index["files"].items():
            if [file["url"] for file in files] != [self._url(index["folder"], kind, i) for i in range(len(files))]:
                raise DamagedFile(f"{damaged} refers to files outside its folder")
        return index

    def _url(self, folder: str, kind: str, number: int) -> str:
        return self._files.url(folder, f"{kind}-{number}.zip")

    def _rotate(self, name: str) -> None:
        """Rename the index to `name.before`, and remove the files of the index that had this name."""
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
    """Facts about the edges in buckets for an index, as JSON values."""
    return {"rows": asdict(rows), "starts": buckets.starts.tolist(), "duplicates": buckets.duplicates}


def edges_of(
    engine: Engine, facts: Mapping[str, Any], futures: Mapping[str, list[Future]]
) -> tuple[RowCounts, Buckets]:
    """The edges in buckets, from the facts of an index and its restored files. Raises ValueError if the facts are not
    those of the files.
    """
    rows = TypeAdapter(RowCounts).validate_python(facts["rows"])
    buckets = Buckets(futures["ids"], futures["edges"], np.array(facts["starts"], np.int64), facts["duplicates"])
    _refuse_unequal(buckets.ids, buckets.edges, buckets.starts[1:])
    _refuse_no_counts([buckets.duplicates, *(count for count in astuple(rows) if isinstance(count, int))])
    found = engine.peek(buckets.edges, _size_and_starts)
    if any(starts != facts["starts"] for _, starts in found):
        raise ValueError("its buckets begin at other vertices")
    edges, duplicates = sum(size for size, _ in found), rows.duplicates + buckets.duplicates
    if rows.rows != edges + rows.self_loops + duplicates + rows.nulls + rows.filtered:
        raise ValueError(f"{rows.rows} rows are not {edges} edges and those that were left out")
    return rows, buckets


def _size_and_starts(edges: BucketEdges) -> tuple[int, list[int]]:
    return len(edges), edges.starts.tolist()


def _refuse_no_counts(numbers: Sequence[int]) -> None:
    """Raises ValueError for a number that counts nothing."""
    if any(not 0 <= number < 2**63 for number in numbers):
        raise ValueError(f"{numbers} are no counts")


def _refuse_unequal(*lists: Sized) -> None:
    """Raises ValueError if the lists have different lengths."""
    if len({len(own) for own in lists}) > 1:
        raise ValueError(f"it lists {', '.join(str(len(own)) for own in lists)} parts of one graph")


def _store(url: str, options: Mapping[str, Any], value: Any) -> StoredFile:
    from ...tasks.checkpoint_values import store  # imports kernels

    return store(value, url, options)


def _restore(stored: StoredFile, options: Mapping[str, Any]) -> Any:
    from ...tasks.checkpoint_values import restore

    return restore(stored, options)


def read_again(
    stored: StoredFile, options: Mapping[str, Any], read: Callable[[StoredFile, Mapping[str, Any]], Any] = _restore
) -> Any:
    """Task: read a result of a lost worker from the checkpoint. Raises ClusterLost if the checkpoint is damaged."""
    try:
        return read(stored, options)
    except DamagedFile as error:
        raise ClusterLost(f"a worker died, and the saved copy of its results is damaged: {error}; run again") from error


def _restore_parts(engine: Engine, files: Mapping[str, Any], options: Mapping[str, Any]) -> dict[str, list[Future]]:
    return {
        kind: engine.map(
            f"restore-{kind}",
            _restore,
            [(StoredFile(**file), options) for file in own],
            engine.partition_workers if kind in ("rows", "owned", "subgraphs") else engine.bucket_workers(len(own)),
        )
        for kind, own in files.items()
    }


def made_of_input(settings: Settings, source: Source) -> dict[str, Any]:
    """Values that determine the edges of an input and their weights, as JSON values by their names in messages."""
    return {
        "input": _input(source),
        "choice of columns": [source.source_column, source.target_column, str(source.id_type)],
        "input.nulls": settings.input.nulls,
        "input.where": settings.input.where,
        "input.bipartite": settings.input.sides_apart,
        "input.two_sided": settings.input.two_sided,
        "input.directed": settings.input.directed,
        "weights": None if source.weights is None else list(astuple(source.weights)),
        "layout of the input": None if source.layout is None else source.layout.facts(),
    }


def _input(source: Source) -> list[list[Any]]:
    return file_identities(source.files) if source.frame is None else [[digest] for digest in source.frame.sha256]


def file_identities(files: Sequence[SourceFile]) -> list[list[Any]]:
    """Identities of the files, as JSON values. A file without a known version never equals another one."""
    return [[file.path, file.bytes, list(file.row_groups), file.version or uuid4().hex] for file in files]
