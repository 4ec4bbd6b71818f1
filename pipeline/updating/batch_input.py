"""The input of `edgemill update`: an earlier result, and edges to insert and to delete."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...tasks.errors import InputError, UsageError
from ...tasks.ids import identity
from ...tasks.ids.display import type_name
from ...tasks.ids.id_types import from_internal
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Frame, Source, plan_blocks
from ...tasks.publish.writing import VALUE_COLUMNS
from ...tasks.storage.folders import Folder
from ...tasks.update.merging import Change, NumberedGraph, apply_batch
from ..frames.input_object import EdgeBatches, InputObject
from ..frames.row_groups import FOLDER, write_rows
from ..monitor.events import Events
from ..output.manifest import BATCH
from ..results.result import Result
from ..settings.input_settings import BLOCK_ROWS
from ..settings.models import IngestSettings, InputSettings
from ..stages.ingesting import RowCounts
from ..stages.sequential import SequentialEngine
from .reading import ReadGraph, no_graph, read_graph
from .threads import ThreadedEngine

_NO_ROWS = RowCounts(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Batch:
    """The edges of a batch."""

    inserted: ReadGraph
    deleted: ReadGraph

    @property
    def repeated(self) -> int:
        """Rows after the first of an edge."""
        return self.inserted.rows.duplicates + self.deleted.rows.duplicates

    def digest(self, base: Result) -> str:
        """SHA-256 that identifies the batch and the result that it changes."""
        made = sha256(base.manifest.run.encode())
        for own in (self.inserted.graph, self.deleted.graph):
            for part in (identity.hashes(own.ids), own.edges.low, own.edges.high):
                made.update(len(part).to_bytes(8, "little") + np.ascontiguousarray(part).tobytes())
        return made.hexdigest()


@dataclass
class BatchInput:
    """An earlier result and a batch of changes as input of a run."""

    base: Result
    insert: InputObject | None
    delete: InputObject | None
    batch: Batch | None = field(default=None, repr=False)
    """Read by `open`."""

    @property
    def name(self) -> str:
        """The location of the earlier result."""
        return str(self.base.place)

    @property
    def paths(self) -> Sequence[str]:
        """The location of the result, and those of the files of the batch."""
        return [self.base.place.url, *(path for own in (self.insert, self.delete) if own for path in own.paths)]

    def open(self, settings: InputSettings, folder: Folder, compute: Callable[..., Any]) -> Source:
        """Read the batch. The source has no files: a graph is made from the result and the batch.

        Raises InputError if the columns or the type of ids are not those of the result.
        """
        if self.batch is None:
            read = [self._read(own, what, settings, compute) for own, what in self._parts()]
            self.batch = Batch(*read)
        record = self.base.manifest.input
        return Source(
            self.name,
            (),
            record.source_column,
            record.target_column,
            self._id_type,
            frame=Frame(BATCH, (self.batch.digest(self.base),)),
            bipartite=record.bipartite,
            directed=record.directed,
        )

    def change(self, graph: NumberedGraph) -> Change:
        """What the batch changes in the graph of the result. Raises OutOfRoom as `apply_batch` does."""
        assert self.batch is not None  # it is opened first
        return apply_batch(graph, self.batch.inserted.graph, self.batch.deleted.graph)

    def written(self, source: Source, graph: NumberedGraph, folder: Folder) -> Source:
        """The source with files below `folder` that have the edges of the new graph, and its vertices without edges."""
        change = self.change(graph)
        made = change.final(change.after()[0])
        if folder.is_local:
            Path(folder.url, FOLDER).mkdir(0o700)
        ends = source.source_column, source.target_column
        alone = np.ones(len(made.ids), np.bool_)
        alone[made.edges.low] = alone[made.edges.high] = False
        loops = np.flatnonzero(alone)
        columns = [
            from_internal(identity.take(made.ids, np.concatenate([end, loops])), source.id_type)
            for end in (made.edges.low, made.edges.high)
        ]
        rows = pa.record_batch(columns, names=list(ends))
        write_rows(folder, 0, EdgeBatches(rows.schema, iter([rows])))
        files = folder.subfolder(FOLDER)
        return replace(open_source(files.url, *ends, files.options, VALUE_COLUMNS), path=self.name, frame=source.frame)

    @property
    def _id_type(self) -> pa.DataType:
        return self.base.vertices.schema.field("id").type

    def _parts(self) -> list[tuple[InputObject | None, str]]:
        return [(self.insert, "insert"), (self.delete, "delete")]

    def _read(
        self, own: InputObject | None, what: str, settings: InputSettings, compute: Callable[..., Any]
    ) -> ReadGraph:
        record, id_type = self.base.manifest.input, self._id_type
        if own is None:
            return ReadGraph(no_graph(id_type), _NO_ROWS)
        how = InputSettings(
            path=what,
            source_column=record.source_column,
            target_column=record.target_column,
            bipartite=record.bipartite,
            storage_options=settings.storage_options,
        )
        with tempfile.TemporaryDirectory(prefix="edgemill-") as folder:
            source = own.open(how, Folder(folder), compute)
            found = source.id_type
            if type_name(found) != type_name(id_type):
                raise InputError(
                    f"--{what} {_name(own)}: its ids are {type_name(found)}, and those of {self.name} are "
                    f"{type_name(id_type)}: convert them"
                )
            ingest = IngestSettings()
            one = len(plan_blocks(source, BLOCK_ROWS)) == 1
            engine = SequentialEngine() if one else ThreadedEngine(BATCH)  # threads are those of kernels
            return read_graph(engine, Events(), source, ingest, settings.nulls)


def refuse_unclear(base: Result) -> None:
    """Raise UsageError if a result does not keep what the programs of a result after a batch need."""
    manifest, programs = base.manifest, ", ".join(program.name for program in base.manifest.programs)
    lacking = None
    if not manifest.has_lambda:
        lacking = "its edges, as it was made without λ"
    elif manifest.input.directed and programs:
        lacking = f"the directions of its edges, which {programs} may need"
    elif manifest.input.bipartite == "refuse":
        lacking = "the columns in which its ids were, which input.bipartite=refuse compares"
    elif manifest.input.weights is not None and programs:
        lacking = f"the weights of its edges, which {programs} may need"
    if lacking is not None:
        raise UsageError(
            f"{base.place} does not keep {lacking}: run the whole new input instead, with --previous {base.place}"
        )


def _name(own: InputObject) -> str:
    """The only path of a part, or what it is."""
    return own.paths[0] if len(own.paths) == 1 else own.name
