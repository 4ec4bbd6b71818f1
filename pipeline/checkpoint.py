"""What a run keeps of its graph while it looks for λ, so that one that is ended goes on from there.

A checkpoint is a folder: files of tasks/storing.py, one for each bucket and partition, and checkpoint.json, written
last, which names them with their SHA-256 and says what they were made of. One of another input or other settings, a
damaged one and one of a newer format are not used, and the reason is told.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
from fsspec.implementations.local import LocalFileSystem

from ..tasks.errors import UsageError
from ..tasks.sources import Source
from ..tasks.storing import DamagedFile, StoredFile, restore, store
from ..tasks.subgraph import PartitionCounts
from .engine import Engine, Future
from .plan import Plan
from .settings import CheckpointSettings, Settings
from .stages import Buckets, Partitions, RowCounts
from .telemetry import Events

__all__ = ["Checkpoint", "Graph"]

FORMAT_VERSION = 1
_INDEX = "checkpoint.json"


@dataclass(frozen=True)
class Graph:
    """All that finding λ and publishing it need."""

    rows: RowCounts
    buckets: Buckets
    partitions: Partitions
    subgraphs: list[Future]
    counts: list[PartitionCounts]


class Checkpoint:
    """The checkpoint of one output. `out` is where the result will be."""

    def __init__(self, settings: Settings, source: Source, plan: Plan, out: Path) -> None:
        own: CheckpointSettings = settings.checkpoint
        self._options = own.storage_options
        self._after_seconds = own.after_seconds
        self._fresh = own.fresh
        name = f".{out.name}.edgemill.checkpoint"
        # In a folder that others use too, one of the output's own.
        own_name = f"{name}-{sha256(os.fsencode(out)).hexdigest()[:16]}"
        self.place = str(out.with_name(name)) if own.path is None else f"{own.path.rstrip('/')}/{own_name}"
        self._files, self._root = fsspec.url_to_fs(self.place, **self._options)
        self._made_of = _made_of(settings, source, plan)
        self.kept = False
        """Whether there is one that a later run may go on from."""

    def due(self, seconds: float) -> bool:
        """Whether work of so many seconds is worth keeping."""
        return self._after_seconds is not None and seconds >= self._after_seconds

    def load(self, engine: Engine, events: Events) -> Graph | None:
        """The graph that an earlier run has kept; None if there is none, or none to use."""
        if self._fresh:
            self.clear()
            return None
        try:
            index = self._read_index()
            if index is None:
                return None
            with events.stage("restore", sum(map(len, index["files"].values()))) as stage, engine.on_device():
                found = {
                    kind: engine.map(
                        f"restore-{kind}",
                        restore,
                        [(StoredFile(**file), self._options) for file in files],
                        engine.homes if kind in ("rows", "subgraphs") else None,
                    )
                    for kind, files in index["files"].items()
                }
                engine.wait([future for futures in found.values() for future in futures], stage)
        except DamagedFile as error:
            events.emit("checkpoint_refused", reason=str(error))
            return None
        self.kept = True
        starts = np.array(index["starts"], np.int64)
        return Graph(
            RowCounts(**index["rows"]),
            Buckets(found["ids"], found["edges"], starts, index["duplicates"]),
            Partitions(found["rows"], found["degrees"]),
            found["subgraphs"],
            [PartitionCounts(**counts) for counts in index["counts"]],
        )

    def save(self, engine: Engine, events: Events, graph: Graph) -> None:
        """Keep a graph, in place of an earlier one."""
        parts: Mapping[str, Sequence[Future]] = {
            "ids": graph.buckets.ids,
            "edges": graph.buckets.edges,
            "degrees": graph.partitions.degrees,
            "rows": graph.partitions.rows,
            "subgraphs": graph.subgraphs,
        }
        before = self._files.ls(self._root, detail=False) if self._files.isdir(self._root) else []
        try:
            self._files.makedirs(f"{self._root}/{engine.run_id}", exist_ok=True)
        except OSError as error:
            raise UsageError(
                f"cannot write the checkpoint {self.place}: {error.strerror or error}; set checkpoint.path"
            ) from error
        with events.stage("keep", sum(map(len, parts.values()))) as stage:
            tasks = {
                kind: engine.map(
                    f"store-{kind}",
                    store,
                    [
                        (future, self._url(f"{engine.run_id}/{kind}-{i}.zip"), self._options)
                        for i, future in enumerate(futures)
                    ],
                )
                for kind, futures in parts.items()
            }
            engine.wait([task for own in tasks.values() for task in own], stage)
            files = {kind: [asdict(file) for file in engine.gather(own)] for kind, own in tasks.items()}
        self._write_index(
            {
                "format": FORMAT_VERSION,
                "made_of": self._made_of,
                "rows": asdict(graph.rows),
                "starts": graph.buckets.starts.tolist(),
                "duplicates": graph.buckets.duplicates,
                "counts": [asdict(counts) for counts in graph.counts],
                "files": files,
            }
        )
        self.kept = True
        for path in before:
            if not path.endswith(_INDEX):
                self._files.rm(path, recursive=True)

    def clear(self) -> None:
        """Remove it, and what a run that was killed while it wrote one has left."""
        if self._files.isdir(self._root):
            self._files.rm(self._root, recursive=True)
        self.kept = False

    def _url(self, name: str) -> str:
        return str(self._files.unstrip_protocol(f"{self._root}/{name}"))

    def _read_index(self) -> dict[str, Any] | None:
        """What checkpoint.json says, if it is of this run's input and settings. Raises DamagedFile with the reason."""
        path = f"{self._root}/{_INDEX}"
        if not self._files.exists(path):
            return None
        try:
            index: dict[str, Any] = json.loads(self._files.cat_file(path))
            if index["format"] > FORMAT_VERSION:
                raise DamagedFile(
                    f"the checkpoint {self.place} was made by a newer edgemill (format {index['format']})"
                )
            for name, value in self._made_of.items():
                if index["made_of"].get(name) != value:
                    raise DamagedFile(f"the checkpoint {self.place} was made with another {name}")
        except (ValueError, LookupError, AttributeError, TypeError) as error:
            raise DamagedFile(f"the checkpoint {self.place} is damaged: {error}") from error
        return index

    def _write_index(self, index: Mapping[str, Any]) -> None:
        path, content = f"{self._root}/{_INDEX}", json.dumps(index).encode()
        if isinstance(self._files, LocalFileSystem):
            self._files.pipe_file(f"{path}.part", content)
            os.replace(f"{path}.part", path)
        else:
            self._files.pipe_file(path, content)  # object stores show an object whole or not at all


def _made_of(settings: Settings, source: Source, plan: Plan) -> dict[str, Any]:
    """What must be the same for a checkpoint to be of use, as JSON values, by what to call them."""
    options = source.storage_options
    files = []
    for file in source.files:
        system, path = fsspec.url_to_fs(file.path, **options)
        files.append([file.path, file.bytes, list(file.row_groups), system.ukey(path)])
    return {
        "input": files,
        "choice of columns": [source.source_column, source.target_column, str(source.id_type)],
        "input.nulls": settings.input.nulls,
        "partitioning.method": plan.partitioning,
        "number of partitions": plan.partitions,
        "number of buckets": plan.buckets,
        "device": "gpu" if plan.capacity.device_bytes else "cpu",
        "place of its edges": "gpu" if plan.ingest_on_device else "host",
    }
