"""The input of `edgemill update`: an earlier result, and edges to insert and to delete.

Where the rows of the new graph have to be read, by a full run or by vertex programs, they are written as files.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from ...tasks.errors import InputError
from ...tasks.ids import identity
from ...tasks.ids.display import type_name
from ...tasks.ids.id_types import from_internal
from ...tasks.ingest.directions import DOWN, UP
from ...tasks.inputs.columns import id_kind, is_uuid
from ...tasks.inputs.formats.form import Form
from ...tasks.inputs.formats.input_format import is_text
from ...tasks.inputs.open_source import open_source
from ...tasks.inputs.sources import Frame, Source, plan_blocks
from ...tasks.publish.writing import EDGE_VALUE_COLUMNS
from ...tasks.storage.folders import Folder
from ...tasks.update.arcs import EdgeArcs, EdgeRows, rows_after
from ...tasks.update.merging import BatchCounts, Change, NumberedGraph, apply_batch
from ...tasks.update.state import State
from ..events import Events
from ..inputs.frame_rows import FOLDER, write_rows
from ..inputs.input_object import EdgeBatches, InputObject
from ..output.manifest import BATCH
from ..results.result import Result
from ..settings.models import BLOCK_ROWS, IngestSettings, InputSettings
from ..stages.ingesting import RowCounts
from ..stages.task_engine import SequentialEngine, ThreadedEngine
from .reading import ReadGraph, no_graph, read_graph

_STEP = 2**20
"""Rows that are made at once."""


def store_rows(rows: EdgeRows, id_type: pa.DataType, ends: tuple[str, str], form: Form, folder: Folder) -> Source:
    """Write rows below `folder`, with the columns `ends` of ids, and open them. A vertex that no row has gets one from
    itself to itself. `form` says what the rows have. Raises UsageError, OutOfRoom.
    """
    if folder.is_local:
        Path(folder.url, FOLDER).mkdir(0o700)
    weights = form.weights if rows.weight is not None else None
    names = [*ends] if weights is None else [*ends, weights.column]
    types = [id_type, id_type] if weights is None else [id_type, id_type, pa.float64()]
    schema = pa.schema(list(zip(names, types, strict=True)))
    write_rows(folder, 0, EdgeBatches(schema, _batches(rows, schema)))
    files = folder.subfolder(FOLDER)
    return open_source(files.url, *ends, files.options, EDGE_VALUE_COLUMNS, form=form)


def _batches(rows: EdgeRows, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows, a few at a time: ids of a whole column may be more text than an array of Arrow holds."""
    alone = rows.alone
    source, target = (np.concatenate([end, alone]) for end in (rows.source, rows.target))
    weight = None if len(schema) == 2 or rows.weight is None else np.concatenate([rows.weight, np.zeros(len(alone))])
    for first in range(0, len(source), _STEP):
        piece = slice(first, first + _STEP)
        ends = [from_internal(identity.take(rows.ids, end[piece]), schema.field(0).type) for end in (source, target)]
        yield pa.record_batch(ends if weight is None else [*ends, pa.array(weight[piece])], schema=schema)


_TYPES_OF_TEXT = pa.types.is_integer, pa.types.is_string, pa.types.is_large_string
"""Tests for types of ids that can be read from text."""
_NO_ROWS = RowCounts(0, 0, 0, 0, 0)


@dataclass(frozen=True)
class Batch:
    """The edges of a batch."""

    inserted: ReadGraph
    deleted: ReadGraph

    @property
    def repeated(self) -> int:
        """Rows after the first of an edge, and of each of its directions if these are read."""
        return sum(own.rows.duplicates - _both_ways(own) for own in (self.inserted, self.deleted))

    def digest(self, base: Result) -> str:
        """SHA-256 that identifies the batch and the result that it changes."""
        made = sha256(base.manifest.run.encode())
        for own in (self.inserted, self.deleted):
            graph, arcs = own.graph, _arcs_of(own)
            parts = (identity.hashes(graph.ids), graph.edges.low, graph.edges.high, arcs.ways, arcs.weight)
            for part in (part for part in parts if part is not None):
                made.update(len(part).to_bytes(8, "little") + np.ascontiguousarray(part).tobytes())
        return made.hexdigest()

    def after(self, state: State) -> tuple[EdgeRows, BatchCounts]:
        """The rows with directions and weights of the graph of `state` after the batch, and how the batch met it."""
        assert state.arcs is not None
        parts = ((own.graph, _arcs_of(own)) for own in (self.inserted, self.deleted))
        plus, minus = (EdgeRows.of(graph, arcs) for graph, arcs in parts)
        return rows_after(EdgeRows.of(state.graph, state.arcs), plus, minus)


@dataclass
class BatchInput:
    """An earlier result and a batch of changes as input of a run."""

    base: Result
    insert: InputObject | None
    delete: InputObject | None
    state: State | None = field(default=None, repr=False)
    """The state of the result, if programs read directions or weights of edges. Then the source of the update has the
    rows of the new graph.
    """
    nonnegative: bool = False
    """Whether weights below 0 are refused."""
    batch: Batch | None = field(default=None, repr=False)
    """Read by `open`."""
    counts: BatchCounts | None = field(default=None, repr=False)
    """How the rows of the batch met those of the graph, if the source has all rows."""

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
        if self.state is not None:
            rows, self.counts = self.batch.after(self.state)
            form = Form(directed=settings.directed, weights=settings.weights)
            stored = store_rows(rows, self._id_type, self._ends, form, folder)
            return replace(stored, path=self.name, frame=self._frame, notes=self._notes)
        return Source(
            self.name,
            (),
            record.source_column,
            record.target_column,
            self._id_type,
            frame=self._frame,
            bipartite=record.bipartite,
            directed=record.directed,
            notes=self._notes,
        )

    def change(self, graph: NumberedGraph) -> Change:
        """What the batch changes in the graph of the result. Raises OutOfRoom as `apply_batch` does."""
        assert self.batch is not None  # it is opened first
        return apply_batch(graph, self.batch.inserted.graph, self.batch.deleted.graph)

    def written(self, source: Source, graph: NumberedGraph, folder: Folder) -> Source:
        """The source with files below `folder` that have the edges of the new graph, and its vertices without edges."""
        change = self.change(graph)
        made = change.final(change.after()[0])
        stored = store_rows(EdgeRows.of(made, EdgeArcs(None, None)), self._id_type, self._ends, Form(), folder)
        return replace(stored, path=self.name, frame=source.frame, notes=source.notes)

    @property
    def _ends(self) -> tuple[str, str]:
        record = self.base.manifest.input
        return record.source_column, record.target_column

    @property
    def _frame(self) -> Frame:
        assert self.batch is not None  # it is read first
        return Frame(BATCH, (self.batch.digest(self.base),))

    @property
    def _notes(self) -> tuple[str, ...]:
        """What was seen in the rows of the batch."""
        assert self.batch is not None  # it is read first
        return (*self.batch.inserted.rows.notes, *self.batch.deleted.rows.notes)

    @property
    def _id_type(self) -> pa.DataType:
        kind = self.base.vertices.schema.field("id").type
        if is_uuid(kind):  # Arrow's tables have the bytes, also of ids that the files call UUIDs
            footer = next(self.base.vertices.get_fragments()).metadata
            names = [footer.schema.column(number).name for number in range(footer.num_columns)]
            if footer.schema.column(names.index("id")).logical_type.type == "UUID":
                return pa.uuid()
        return kind

    def _parts(self) -> list[tuple[InputObject | None, str]]:
        return [(self.insert, "insert"), (self.delete, "delete")]

    def _read(
        self, own: InputObject | None, what: str, settings: InputSettings, compute: Callable[..., Any]
    ) -> ReadGraph:
        record, id_type = self.base.manifest.input, self._id_type
        if own is None:
            return ReadGraph(no_graph(id_type), _NO_ROWS)
        more: dict[str, Any] = {}
        if self.state is not None and what == "insert" and settings.weight_column is not None:
            more = {"weight_column": settings.weight_column, "repeats": settings.repeats}
        kind = id_kind(id_type)
        how = InputSettings(
            path=what,
            source_column=record.source_column,
            target_column=record.target_column,
            bipartite=record.bipartite,
            storage_options=settings.storage_options,
            directed=self.state is not None and settings.directed,
            **more,
        )
        with tempfile.TemporaryDirectory(prefix="edgemill-") as folder:
            source = own.open(how, Folder(folder), compute)
            if source.weights is not None:
                source = replace(source, weights=replace(source.weights, nonnegative=self.nonnegative))
            if is_text(source.format) and any(test(id_type) for test in _TYPES_OF_TEXT):
                source = source.with_ids(id_type)
            if id_kind(source.id_type) != kind and source.rows:
                raise InputError(
                    f"--{what} {_name(own)}: its ids are {type_name(source.id_type)}, and those of {self.name} are "
                    f"{type_name(id_type)}: cast them to that type"
                )
            source = replace(source, id_type=id_type, id_range=None)
            ingest = IngestSettings()
            one = len(plan_blocks(source, BLOCK_ROWS)) == 1
            engine = SequentialEngine() if one else ThreadedEngine(BATCH)  # threads are those of kernels
            return read_graph(engine, Events(), source, ingest, settings.nulls, with_arcs=self.state is not None)


def _arcs_of(own: ReadGraph) -> EdgeArcs:
    edges = [] if own.arcs is None else own.arcs.edges
    has_ways, has_weights = (any(getattr(one, name) is not None for one in edges) for name in ("ways", "weight"))
    return EdgeArcs.of(edges, has_ways, has_weights)


def _both_ways(own: ReadGraph) -> int:
    """Edges that a part of a batch has in both directions."""
    ways = _arcs_of(own).ways
    return 0 if ways is None else int(np.count_nonzero(ways == UP | DOWN))


def _name(own: InputObject) -> str:
    """The only path of a part, or what it is."""
    return own.paths[0] if len(own.paths) == 1 else own.name
