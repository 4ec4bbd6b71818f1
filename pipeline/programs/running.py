"""Vertex programs on the cluster: one block of the graph on each worker, and one barrier in each superstep.

A block is a range of ids; all have about equal work. A small graph has one block. If there are several blocks,
no task and no client holds all edges. A program stops when a checkpoint is due, and goes on from the saved state. When
a worker is lost, the program that was running resumes from its checkpoint. A program that has finished runs again only
if columns of it that no checkpoint has were on that worker.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import getitem
from typing import Any, NoReturn, TypeVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...tasks.device import MemorySpace
from ...tasks.errors import InternalError, StateLost, UsageError
from ...tasks.ids.identity import Kind
from ...tasks.inputs.sources import Source
from ...tasks.messages import Bundle
from ...tasks.partition import RangePartitioner
from ...tasks.programs import (
    EdgeProgram,
    GraphBlock,
    GraphProgram,
    Order,
    Program,
    ProgramOutcome,
    SourceProgram,
    delivery,
    run_blocks,
)
from ...tasks.programs.local_runs import AnyProgram
from ...tasks.programs.orders.calls import KINDS, takes_weights
from ...tasks.programs.program import level_names
from ...tasks.programs.running import can_pause
from ...tasks.programs.warm import warm_program
from ...tasks.publish.tables import TableColumn
from ..cluster.carriers import Communicator
from ..cluster.engine import Engine, Future
from ..cluster.this_worker import event_reporter, leave_pool
from ..events import Events, Stage
from ..output.manifest import ProgramRecord
from ..results.result import Result
from ..settings.declared_programs import DeclaredProgram, ProgramColumn, check_importable
from ..settings.models import Settings
from ..stages.exchange import exchange, forward, send
from ..stages.ingesting import Buckets
from ..stages.layout import Layout
from .blocks import GraphBlocks, cut_graph, file_allocator, place_blocks, task_bytes
from .earlier_groups import begins_with, groups_before
from .making import TOLD, identity_of, program_of, record_of, topology_limit
from .results import (
    Supports,
    add_edge_columns,
    add_groups,
    add_pairs,
    add_similar,
    columns_of_edges,
    no_columns,
    similar_rows,
    table_program,
)
from .saving import Finished, KeptPrograms, Paused
from .vertices import Numbers, find_vertices

T = TypeVar("T", int, float)


@dataclass(frozen=True)
class ProgramResults:
    """The results of all programs of a run."""

    columns: list[Future]
    """[buckets] lists of TableColumn, for vertices"""
    of_edges: list[Future] | None
    """[buckets] lists of TableColumn, for edges; None if no program has any"""
    pairs: list[Future] | None
    """[buckets] NamedColumns with the table of distances; None without one"""
    groups: dict[str, list[Future]]
    """[buckets] NamedColumns with groups, by the name of their table"""
    similar: list[Future] | None
    """[buckets] NamedColumns with pairs of similar vertices; None without any"""
    records: list[ProgramRecord]


def warm_programs(engine: Engine, settings: Settings, blocks: int) -> None:
    """Have the kernels of all programs compiled, or loaded from the cache, by every worker, for a graph in `blocks`."""
    _check_workers(engine, settings)
    programs = [program_of(name, settings) for name in settings.requested_programs]
    weighted = settings.input.weight_column is not None
    how = settings.programs
    at_once = blocks == 1 and how.max_supersteps is None and how.order != "asynchronous"
    engine.on_every_worker(_warm, programs, _space(engine), weighted, at_once)


def _check_workers(engine: Engine, settings: Settings) -> None:
    """Raises UsageError if a worker does not have the module of a program of the user."""
    declared = settings.requested_programs.values()
    own = [(program.name, program.place, program.sha256) for program in declared if program.is_own]
    if not own:
        return
    for address, why in zip(engine.session.workers, engine.on_every_worker(check_importable, own), strict=True):
        if why is not None:
            raise UsageError(f"worker {address}: {why.removeprefix('programs.own: ')}")


def _warm(programs: Sequence[AnyProgram | EdgeProgram], space: MemorySpace, weighted: bool, at_once: bool) -> None:
    for program in programs:
        warm_program(program, space, weighted=weighted, at_once=at_once)


def _space(engine: Engine) -> MemorySpace:
    """The memory in which programs run: that of the workers' GPUs, if they have some."""
    return MemorySpace.DEVICE if engine.capacity.device_bytes else MemorySpace.HOST


def run_programs(
    engine: Engine,
    events: Events,
    settings: Settings,
    source: Source,
    buckets: Buckets,
    degrees: Sequence[Future],
    kept: KeptPrograms,
    supports: Supports | None = None,
    earlier: Result | None = None,
) -> ProgramResults:
    """Run the requested programs, one after the other, except those in `kept`. `degrees` [buckets] are BucketDegrees.
    Programs with columns of edges, or by support, need `supports`. Some begin with their groups in an `earlier` result.

    Raises StateLost if a worker is lost with its block.
    """
    wanted = settings.requested_programs
    numbers = find_vertices(engine, settings, source, buckets)
    runs = _Runs(engine, events, settings, source, buckets, degrees, kept, supports, earlier)
    done: list[Finished] = []
    columns = [[(column, column.type(source.id_type)) for column in own.columns] for own in wanted.values()]
    with events.stage("programs", len(wanted)) as stage:
        for name, declared in wanted.items():
            finished = kept.finished(name, runs.identity(name, declared)) or runs.run(name, declared, numbers)
            done.append(finished)
            _tell(events, stage, finished.record)
        tasks = [(columns, [own.columns[b] for own in done]) for b in range(len(buckets.ids))]
        published = engine.map("vertex-columns", _vertex_columns, tasks)
        of_edges = None
        own_edges = [own.edge_columns for own in wanted.values()]
        if any(own_edges):
            of_edges = engine.map("edge-columns", columns_of_edges, [(own_edges, futures) for _, futures in tasks])
        engine.wait([*published, *(of_edges or [])])
    with_table = table_program(settings)
    pairs = next((own.columns for own in done if own.record.name == with_table), None)
    groups = {f"{own.record.group_column}s": own.columns for own in done if own.record.group_column is not None}
    similar = next((own.columns for own, kind in zip(done, wanted.values(), strict=True) if kind.finds_similar), None)
    return ProgramResults(published, of_edges, pairs, groups, similar, [own.record for own in done])


@dataclass
class _Runs:
    """Runs programs one after the other, on blocks that are cut again for a program that needs other entries."""

    engine: Engine
    events: Events
    settings: Settings
    source: Source
    buckets: Buckets
    degrees: Sequence[Future]
    kept: KeptPrograms
    supports: Supports | None
    earlier: Result | None
    """The result with whose groups programs begin."""
    home: RangePartitioner | None = None
    """The ranges of ids of the blocks."""
    graph: GraphBlocks | None = None
    """The blocks of the last program."""

    def run(self, name: str, declared: DeclaredProgram, numbers: Numbers) -> Finished:
        """Run a program to its end, and keep its columns."""
        started, program = time.perf_counter(), program_of(name, self.settings, numbers)
        if isinstance(program, EdgeProgram):
            named = self._with_edges(program, no_columns(self.engine, self.buckets), [])
            record = record_of(declared, self.settings, time.perf_counter() - started)
        else:
            named, record = self._run_on_blocks(name, declared, program)
        return self.kept.finish(name, self.identity(name, declared), named, record)

    def identity(self, name: str, declared: DeclaredProgram) -> dict[str, Any]:
        """What the results of a program depend on, beside the graph."""
        before = self._begins_with(declared, program_of(name, self.settings))
        return identity_of(name, self.settings) | ({} if before is None else {"the earlier run": before.manifest.run})

    def _begins_with(self, declared: DeclaredProgram, program: AnyProgram | EdgeProgram) -> Result | None:
        return begins_with(self.earlier, declared, program, self.settings, self.source.id_type)

    def _run_on_blocks(
        self, name: str, declared: DeclaredProgram, program: AnyProgram
    ) -> tuple[list[Future], ProgramRecord]:
        graph, earlier, before = self._graph_for(program), self._begins_with(declared, program), None
        if earlier is not None:
            before = self.engine.map("groups-before", groups_before, [(earlier, name, self.buckets.ids)])
        ran = _run_to_end(self.engine, self.events, graph, name, program, self.settings, self.kept, before)
        types = {column.state: KINDS[program.state[column.state]] for column in declared.columns}
        types |= dict.fromkeys(level_names(ran.figures[0].levels), "int32")
        ids = [column.state for column in declared.columns if column.kind == "id"]
        found = _bring_back(self.engine, self.buckets, ran.states, types)
        if isinstance(program, Program) and program.edges and self.supports is not None:
            named = self._with_edges(program, found, ids)
        else:
            named = _name(self.engine, self.buckets, found, ids, self.source.kind)
        if isinstance(program, Program) and program.groups is not None:
            space = _space(self.engine)
            named = add_groups(self.engine, self.buckets, self.degrees, program, space, found, named)
        if isinstance(program, Program) and program.finds_similar:
            pairs = similar_rows(self.engine, self.buckets, ran.states)
            of_pairs = _name(self.engine, self.buckets, pairs, ["source", "target"], self.source.kind)
            named = add_similar(self.engine, named, of_pairs)
        if isinstance(program, SourceProgram) and program.table:
            named = add_pairs(self.engine, self.buckets, ran.states, named)
        begun = "nothing" if before is None else "earlier"
        return named, record_of(declared, self.settings, ran.seconds, ran.figures, ran.carrier, begun=begun)

    def _with_edges(self, program: Program | EdgeProgram, found: list[Future], ids: Sequence[str]) -> list[Future]:
        """The columns of a program with those of edges; `ids` are columns that are ids of vertices."""
        assert self.supports is not None  # the settings have λ
        named = _name(self.engine, self.buckets, found, ids, self.source.kind)
        return add_edge_columns(self.engine, self.buckets, self.degrees, self.supports, program, found, named)

    def _placed(self) -> RangePartitioner:
        """The ranges of ids of the blocks of programs that may have several."""
        if self.home is None:
            self.home = place_blocks(self.engine, self.buckets, self.degrees)
        return self.home

    def _graph_for(self, program: AnyProgram) -> GraphBlocks:
        """The graph in blocks with the entries that a program reads."""
        # The entries of an undirected graph are the same by all views.
        directed = self.source.directed and not program.by_support
        view = program.view if directed else "both"
        weighted = takes_weights(program, self.settings.input.weight_column is not None)
        home = RangePartitioner() if isinstance(program, GraphProgram) else self._placed()
        wanted = home.partitions, view, weighted, program.by_support
        graph = self.graph
        if graph is None or (graph.home.partitions, graph.view, graph.weighted, graph.by_support) != wanted:
            self.graph = graph = None  # released before the next one is made
            on_device = bool(self.engine.capacity.device_bytes)
            how = directed, view, weighted, on_device, topology_limit(self.settings)
            supports = self.supports if program.by_support else None
            self.graph = graph = cut_graph(self.engine, self.buckets, home, *how, supports)
        return graph


def program_tasks(layout: Layout, programs: Sequence[int], cuts: Sequence[int], places: bool) -> int:
    """Tasks of `programs` and of `cuts` of the graph, both by their numbers of blocks; `places`: blocks are placed."""
    buckets = layout.buckets
    found = (buckets + layout.peek(2 * buckets)) * places
    found += sum(layout.exchange(buckets, blocks) for blocks in cuts)
    ids = layout.exchange(buckets, buckets) + layout.forward(buckets, buckets)
    for blocks in programs:
        run = min(blocks, layout.workers) + 2 * blocks + layout.peek(blocks)
        found += run + layout.exchange(blocks, buckets) + ids
    return found + buckets


def _tell(events: Events, stage: Stage, record: ProgramRecord) -> None:
    events.emit("program", **record.model_dump(include=TOLD))
    stage.task_done()


@dataclass(frozen=True)
class _Ran:
    """A program that has ended, by itself or by a limit."""

    states: list[Future]
    """[groups] ProgramOutcome"""
    figures: list[ProgramOutcome]
    """[groups] the same without arrays"""
    carrier: str
    seconds: float


def _run_to_end(
    engine: Engine,
    events: Events,
    graph: GraphBlocks,
    name: str,
    program: AnyProgram,
    settings: Settings,
    kept: KeptPrograms,
    begin: list[Future] | None = None,
) -> _Ran:
    """Run a program until it ends or reaches a limit of the settings, and save it whenever a checkpoint is due. A
    program that is not paused begins with `begin` [groups], if given.

    Raises InternalError if groups have received more or less than they were sent.
    """
    started, parameters = time.perf_counter(), identity_of(name, settings)
    most_steps, most_seconds = settings.programs.max_supersteps, settings.programs.max_seconds
    goes_on = isinstance(program, Program) and can_pause(program, settings.programs.order)
    paused = kept.paused(name, parameters, len(graph.blocks)) if goes_on else None
    states, step, before = (begin, 0, 0.0) if paused is None else (paused.states, paused.supersteps, paused.seconds)
    stuck = False
    while True:
        left = None if most_seconds is None else max(0.0, most_seconds - (time.perf_counter() - started))
        due, most = (kept.seconds_left(name) if goes_on else None), most_steps
        if due is not None and (due <= 0 or stuck):  # one superstep in any case, so that the program gets on
            due, most = None, _least(step + 1, most_steps)
        seconds = _least(left, due)
        topic, at = f"edgemill-{engine.run_id}-{name}", time.perf_counter()
        with engine.subscribed(topic, partial(_emit_batch, events, name)):
            states, carrier = run_on_blocks(engine, graph, program, settings, states, most, seconds, topic)
        figures = engine.peek(states, _figures)
        stuck, step = figures[0].steps == step, figures[0].steps
        _check_delivery(name, figures)
        if seconds is not None:
            kept.stop_seconds = max(0.0, time.perf_counter() - at - seconds)
        spent = time.perf_counter() - started
        late = most_seconds is not None and spent >= most_seconds
        if figures[0].converged or late or not goes_on or step == most_steps:
            return _Ran(states, figures, carrier, round(before + spent, 3))
        states = kept.pause(name, parameters, Paused(states, step, before + spent)).states


def _check_delivery(name: str, figures: Sequence[ProgramOutcome]) -> None:
    """Raises InternalError if groups have received more or less than they were sent."""
    sent, received = (sum(getattr(own, count) for own in figures) for count in ("bytes", "received"))
    if sent != received:
        raise InternalError(f"{sent:,} bytes were sent by the groups of {name}, and {received:,} arrived")


def _least(one: T | None, other: T | None) -> T | None:
    """The smaller limit; None for no limit."""
    return min((limit for limit in (one, other) if limit is not None), default=None)


def run_on_blocks(
    engine: Engine,
    graph: GraphBlocks,
    program: AnyProgram,
    settings: Settings,
    before: Sequence[Future] | None = None,
    most_steps: int | None = None,
    seconds: float | None = None,
    topic: str | None = None,
) -> tuple[list[Future], str]:
    """[groups] ProgramOutcome, and the kind of carrier. The program goes on from `before` [groups], if given.

    Batches of sources are events under `topic`, if given.
    """
    groups = len(graph.blocks)
    engine.refresh_workers()
    with engine.exclusive("peeling"):  # nor does a search for λ of another run come in between
        communicator = Communicator.of(engine, groups, settings.bounding.carrier)
        engine = engine.for_tasks(communicator.workers)
        arguments = [
            (
                communicator,
                w,
                [graph.blocks[g] for g in communicator.groups_of(w)],
                None if before is None else [before[g] for g in communicator.groups_of(w)],
                program,
                graph.home,
                engine.capacity.kernel_threads,
                _space(engine),
                most_steps,
                seconds,
                settings.programs.order,
                topology_limit(settings),
                task_bytes(engine),
                None if w else topic,
            )
            for w in range(communicator.workers)
        ]
        tasks = engine.run_gang("run-program", _run_blocks, arguments)
    places = [(tasks[g % communicator.workers], g // communicator.workers) for g in range(groups)]
    found = engine.map("found", getitem, places, [g % communicator.workers for g in range(groups)])
    engine.wait_with_gang(found, tasks)
    return engine.cut_lineage("found-held", found, _lost, [()] * groups), communicator.choice.kind


def _emit_batch(events: Events, name: str, fields: Mapping[str, object]) -> None:
    events.emit("batch", program=name, **fields)


def _lost() -> NoReturn:
    raise StateLost("a worker died with unsaved results of a vertex program; run again")


def _run_blocks(
    communicator: Communicator,
    worker: int,
    blocks: Sequence[GraphBlock],
    before: Sequence[ProgramOutcome] | None,
    program: AnyProgram,
    home: RangePartitioner,
    threads: int,
    space: MemorySpace,
    most_steps: int | None,
    seconds: float | None,
    order: Order,
    topology_bytes: int | None,
    resident: int | None,
    topic: str | None,
) -> list[ProgramOutcome]:
    """Task: run a program on the blocks of one worker, of whose mapped files about `resident` bytes stay in memory."""
    leave_pool()
    send = event_reporter(topic)

    def progress(done: int, batches: int, spent: float, predicted: float | None) -> None:
        whole = None if predicted is None else round(predicted, 3)
        send(done=done, batches=batches, seconds=round(spent, 3), predicted_seconds=whole)

    own = [replace(block, view=program.view) for block in blocks]
    with communicator.open_carriers(worker) as carriers, file_allocator(resident, own) as allocator:
        found = run_blocks(
            program,
            own,
            home,
            carriers,
            threads=threads,
            space=space,
            most_steps=most_steps,
            seconds=seconds,
            before=before,
            order=order,
            progress=progress,
            topology_bytes=topology_bytes,
            allocator=allocator,
        )
    return [outcome.placed(MemorySpace.HOST) for outcome in found]


def _figures(outcome: ProgramOutcome) -> ProgramOutcome:
    """The outcome without its arrays."""
    return replace(outcome, number=outcome.number[:0], state={}, pending=None, pairs=None, similar=None)


def _bring_back(
    engine: Engine,
    buckets: Buckets,
    states: Sequence[Future],
    kept: Mapping[str, str],
) -> list[Future]:
    """[buckets] BucketColumns of the state's arrays in `kept`."""
    starts, everyone = buckets.starts, range(len(buckets.ids))
    engine = engine.for_tasks(len(everyone))
    sent = send(engine, "send-state", "state", _send_kept, [(own, list(kept), starts) for own in states])
    return exchange(engine, "state", sent, delivery.collect_state, [(b, starts, kept) for b in everyone])


def _name(engine: Engine, buckets: Buckets, found: Sequence[Future], ids: Sequence[str], kind: Kind) -> list[Future]:
    """[buckets] NamedColumns of BucketColumns; the arrays in `ids` are vertex numbers."""
    engine, starts = engine.for_tasks(len(found)), buckets.starts
    asked = send(engine, "ask-ids", "asked-ids", delivery.ask_ids, [(own, ids, starts) for own in found])
    own = [(ids, starts) for ids in buckets.ids]
    answers = forward(engine, "asked-ids", asked, "named", delivery.answer_ids, own)
    named = exchange(engine, "named", answers, delivery.name_columns, [(own, ids, kind) for own in found])
    engine.wait(named)
    return named


def _send_kept(outcome: ProgramOutcome, names: Sequence[str], starts: NDArray[np.int64]) -> Bundle[delivery.StateRows]:
    return delivery.send_state(replace(outcome, state={name: outcome.state[name] for name in names}), starts)


def _vertex_columns(
    columns: Sequence[Sequence[tuple[ProgramColumn, pa.DataType]]], named: Sequence[delivery.NamedColumns]
) -> list[TableColumn]:
    return [
        TableColumn(
            column.name, kind, found.columns[column.state], found.ids if column.kind == "id" else None, column.missing
        )
        for own, found in zip(columns, named, strict=True)
        for column, kind in own
    ]
