"""Vertex programs over an updated graph, in this process: on one block, from the values of the earlier result."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...kernels.runtime.threads import kernel_threads
from ...tasks.device import MemorySpace
from ...tasks.ids import identity
from ...tasks.ids.id_types import to_internal
from ...tasks.ingest.degrees import BucketDegrees
from ...tasks.inputs.sources import Source
from ...tasks.partition import RangePartitioner
from ...tasks.programs import GraphBlock, Program, ProgramOutcome, delivery, run_blocks
from ...tasks.programs.orders.calls import KINDS, takes_weights
from ...tasks.programs.program import View
from ...tasks.programs.running import Pending
from ...tasks.programs.shipped.bfs import BreadthFirst
from ...tasks.programs.shipped.components import Components
from ...tasks.programs.shipped.pagerank import PageRank
from ...tasks.programs.warm import warm_program
from ...tasks.publish.tables import TableColumn
from ...tasks.shards import MemoryCarrier
from ...tasks.update.earlier_values import components_after, ranks_to_start, search_after
from ...tasks.update.merging import Change
from ..events import Events
from ..output.manifest import ProgramRecord
from ..results.result import Result
from ..settings.declared_programs import DeclaredProgram
from ..settings.models import Settings
from ..stages.ingesting import Buckets
from ..stages.task_engine import TaskEngine
from .earlier_groups import begins_with, groups_before
from .making import TOLD, program_of, record_of
from .results import add_groups
from .vertices import find_vertices

Values = dict[str, NDArray[Any]]
"""Arrays of a program's state by name, for all vertices."""
GroupTables: TypeAlias = dict[str, list[delivery.NamedColumns]]
"""[1] the groups of programs, by the name of their table."""


@dataclass(frozen=True)
class EarlierPrograms:
    """The result before, and what has changed since."""

    result: Result
    change: Change

    def values(self, program: DeclaredProgram, settings: Settings) -> Values | None:
        """The state of a program in the earlier result, whose vertices are positions in that result; None if it did not
        run, did not end, ran with other parameters, or if what has changed since does not tell enough.
        """
        manifest = self.result.manifest
        record = next((own for own in manifest.programs if own.name == program.name), None)
        if record is None or not record.converged or record.parameters != settings.parameters_of(program.name):
            return None
        if (record.source, record.sha256) != (program.place if program.is_own else None, program.sha256):
            return None
        directed = manifest.input.directed
        if directed != settings.input.directed or (directed and issubclass(program.kind, BreadthFirst)):
            return None  # changes have no directions, on which levels depend
        with self.result.reading():
            table = self.result.vertices.to_table(columns=["id", *(column.name for column in program.columns)])
        ids = to_internal(table["id"], table["id"].type)
        found: Values = {}
        for column in program.columns:
            values = table[column.name]
            if column.kind == "id":
                known = ~values.is_null().to_numpy()
                found[column.state] = np.full(len(ids), -1, np.int64)
                named = to_internal(values.drop_null(), values.type)
                found[column.state][known] = identity.encode(ids, named)[2] if len(named) else []
            else:
                filled = values if column.missing is None else values.fill_null(column.missing)
                found[column.state] = filled.to_numpy()
        return found


def run_on_one_block(
    engine: TaskEngine,
    events: Events,
    settings: Settings,
    source: Source,
    ids: identity.Ids,
    buckets: Buckets,
    degrees: Callable[[], BucketDegrees],
    earlier: EarlierPrograms,
) -> tuple[list[TableColumn], GroupTables, list[ProgramRecord]]:
    """The columns of all requested programs for the vertices `ids` of a graph, their groups, and how each of them ran.
    `buckets` have its edges, with directions and weights if the source has any, and `degrees` computes their degrees.

    Raises InputError and UsageError for vertices of the settings that the graph does not have.
    """
    wanted, threads = settings.requested_programs, engine.capacity.kernel_threads
    numbers = find_vertices(engine, settings, source, buckets)
    columns: list[TableColumn] = []
    records: list[ProgramRecord] = []
    tables: GroupTables = {}
    blocks = _Blocks(source, buckets, len(ids))
    with events.stage("programs", len(wanted)) as stage, kernel_threads(threads):
        for name, declared in wanted.items():
            began = time.perf_counter()
            program = program_of(name, settings, numbers)
            assert isinstance(program, Program)  # others are an obstacle to updates
            before = earlier.values(declared, settings)
            ran = None if before is None else _kept(program, earlier.change, before)
            if ran is None:
                warm_program(program, directed=source.directed, weighted=source.weights is not None)
                begin = None if before is None else _beginning(program, earlier.change, before)
                base = begins_with(earlier.result, declared, program, settings, source.id_type)
                if base is not None:
                    begin = groups_before(base, name, buckets.ids)
                (outcome,) = run_blocks(
                    program,
                    [blocks.of(program)],
                    RangePartitioner(),
                    MemoryCarrier.open(1),
                    threads=threads,
                    order=settings.programs.order,
                    before=[begin],
                )
                ran = _Ran(outcome, "nothing" if begin is None else "earlier")
            if program.groups is not None and declared.group_column is not None:
                own = [delivery.BucketColumns(0, ran.outcome.state)], [delivery.NamedColumns(0, {}, ids[:0])]
                (named,) = add_groups(engine, buckets, [degrees()], program, MemorySpace.HOST, *own)
                tables[f"{declared.group_column}s"] = [named]
                ran = replace(ran, outcome=replace(ran.outcome, state=ran.outcome.state | dict(named.columns)))
            for column in declared.columns:
                values = ran.outcome.state[column.state].astype(KINDS[program.state[column.state]], copy=False)
                of_ids = ids if column.kind == "id" else None
                columns.append(TableColumn(column.name, column.type(source.id_type), values, of_ids, column.missing))
            record = record_of(declared, settings, time.perf_counter() - began, [ran.outcome], begun=ran.begun)
            records.append(record)
            events.emit("program", **record.model_dump(include=TOLD))
            stage.task_done()
    return columns, tables, records


class _Blocks:
    """The graph in one block, made again when a program has another view of the edges, or takes weights."""

    def __init__(self, source: Source, buckets: Buckets, vertices: int) -> None:
        self._source = source
        self._buckets = buckets
        self._vertices = vertices
        self._made: tuple[View, bool, GraphBlock] | None = None

    def of(self, program: Program) -> GraphBlock:
        directed = self._source.directed
        # The entries of an undirected graph are the same by all views.
        view = program.view if directed else "both"
        weighted = takes_weights(program, self._source.weights is not None)
        if self._made is None or self._made[:2] != (view, weighted):
            self._made = None  # released before the next one is made
            block = delivery.in_one_block(self._buckets.edges, self._vertices, directed, view, weighted)
            self._made = view, weighted, block
        return replace(self._made[2], view=program.view)


@dataclass(frozen=True)
class _Ran:
    outcome: ProgramOutcome
    begun: Literal["nothing", "earlier", "kept"]


def _kept(program: Program, change: Change, before: Values) -> _Ran | None:
    """The values that follow from those before without a superstep; None if there are none."""
    found: Values | None = None
    if isinstance(program, Components):
        component = components_after(change, before["component"])
        found = None if component is None else {"component": component}
    elif isinstance(program, BreadthFirst):
        searched = search_after(change, before["level"], before["parent"])
        found = None if searched is None else dict(zip(("level", "parent"), searched, strict=True))
    if found is None:
        return None
    vertices = len(next(iter(found.values())))
    return _Ran(ProgramOutcome(0, np.arange(vertices), found, 0, True, 0, 0, 0), "kept")


def _beginning(program: Program, change: Change, before: Values) -> ProgramOutcome | None:
    """What the program goes on from; None if it begins anew."""
    if not isinstance(program, PageRank) or program.iterations is not None:
        return None
    rank = ranks_to_start(change, before["rank"])
    everyone = Pending(np.arange(len(rank), dtype=np.int32), np.ones(len(rank)))
    return ProgramOutcome(0, np.arange(len(rank)), {"rank": rank}, 0, False, 0, 0, 0, pending=everyone)
