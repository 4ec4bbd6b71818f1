"""Vertex programs in a plan: blocks, memory, the order of supersteps, and what streaming edges past a GPU costs.

Memory while blocks are built is measured, for each entry of a block, with the messages that bring it: 7 bytes in the
only block of an undirected graph from one bucket, and 4 more from several; 41 in the only block of a directed graph;
and 28 in one of two blocks (docs/engineering/programs.md).
"""

from __future__ import annotations

from dataclasses import dataclass

from ...tasks.programs import AnyProgram, EdgeProgram, GraphProgram, Program
from ...tasks.programs.orders.calls import takes_weights
from ...tasks.programs.program import Cost, View
from ...tasks.programs.streaming import FILL as DEVICE_FILL
from ...tasks.programs.streaming import VERTEX_BYTES as DEVICE_VERTEX_BYTES
from ...tasks.programs.streaming import StreamCost
from ..cluster.execution import Capacity
from ..messages.wording import format_bytes
from ..programs.making import program_of, topology_limit
from ..settings.models import Settings
from ..stages.layout import Layout
from ..stages.limits import FILL, SHARE_OF_PIECES, program_blocks
from .seconds import program_seconds

BUILD_BYTES_ONCE = 12
"""Memory of an entry while the only block of an undirected graph is built, from edges that are sent once."""
BUILD_BYTES = 42
"""Memory of an entry while the only block of a directed graph is built."""
BUILD_BYTES_IN_BLOCKS = 28
"""Memory of an entry of a block while one of several is built."""
BUILD_WEIGHT_BYTES = 24
"""Memory that a weight adds: in the message, in all messages joined, and in the order of its row."""
BUILD_WEIGHT_BYTES_ONCE = 12
"""The same in the only block of an undirected graph: in the edges joined, and in the block."""
GRAPH_BYTES = 24
"""Additional memory of an entry while a program needs all edges: a weight, and a smaller graph made of it."""
VERTEX_BYTES = 200
"""Memory of a vertex while a program runs. Measured: 55 to 200."""


@dataclass(frozen=True)
class PlannedProgram:
    """What the memory and the order of a program depend on."""

    name: str
    view: View
    weighted: bool
    """Whether blocks need weights."""
    reversed: bool
    """Whether the program needs the rows by source, unless they are the rows by target."""
    relaxed: bool
    """Whether the program has an asynchronous form."""
    vertex_bytes: int
    """Memory of a vertex on the CPU."""
    on_device: bool
    """Whether it runs on GPUs where the run does."""
    supersteps: int | None = None
    """Maximum number of supersteps, if each of them reads all entries and sums."""
    likely_steps: int | None = None
    """Supersteps that take the time of all entries, as far as they are known before the run."""
    cost: Cost | None = None
    """What its seconds on a CPU are predicted from."""
    in_one_block: bool = False
    """Whether one worker needs all edges."""


def planned_programs(settings: Settings, threads: int) -> tuple[PlannedProgram, ...]:
    """The requested vertex programs, on workers with a number of threads."""
    found = (_planned(name, program_of(name, settings), settings, threads) for name in settings.requested_programs)
    return tuple(own for own in found if own is not None)


def _planned(name: str, program: AnyProgram | EdgeProgram, settings: Settings, threads: int) -> PlannedProgram | None:
    """None for a program that needs no blocks."""
    if isinstance(program, EdgeProgram):
        return None
    if not isinstance(program, Program):  # searches from batches of sources, by words of bits
        of_batch = 8 * program.batch if program.search == "paths" else 3 * program.batch // 8
        return PlannedProgram(name, program.view, False, True, False, VERTEX_BYTES + of_batch, False)
    if isinstance(program, GraphProgram):
        weighted = takes_weights(program, settings.input.weight_column is not None)
        of_vertex = VERTEX_BYTES + program.vertex_bytes(threads)
        return PlannedProgram(name, program.view, weighted, False, False, of_vertex, False, in_one_block=True)
    sums_all = program.combine == "sum" and program.senders == "all"
    return PlannedProgram(
        name,
        program.view,
        takes_weights(program, settings.input.weight_column is not None),
        (program.senders == "changed" and not program.spreads) or program.alternates,
        program.relaxed is not None,
        VERTEX_BYTES,
        program.combine != "links" and not program.alternates,
        program.most_steps if sums_all else None,
        1 if program.cost is not None and program.cost.in_all else program.likely_steps,
        program.cost,
    )


@dataclass(frozen=True)
class PlannedPrograms:
    """The vertex programs of a run, on a graph and workers. Bytes are of one worker."""

    programs: tuple[PlannedProgram, ...]
    order: str
    """The setting `programs.order`."""
    topology_limit: int | None
    """The setting for the GPU memory of edges."""
    directed: bool
    rows: int
    """Rows of the input."""
    edges: int
    """Distinct edges, whatever their direction."""
    vertices: int
    capacity: Capacity

    @classmethod
    def of(
        cls, settings: Settings, directed: bool, rows: int, edges: int, vertices: int, capacity: Capacity
    ) -> PlannedPrograms:
        """The requested programs on a graph."""
        programs, most = planned_programs(settings, capacity.kernel_threads), topology_limit(settings)
        return cls(programs, settings.programs.order, most, directed, rows, edges, vertices, capacity)

    @property
    def blocks(self) -> int:
        """Blocks of the graph: one for each worker that has enough work."""
        return program_blocks(self.capacity.workers, 2 * self.edges)

    def blocks_of(self, program: PlannedProgram) -> int:
        """Blocks of the graph for a program."""
        return 1 if program.in_one_block else self.blocks

    def entries(self, program: PlannedProgram) -> int:
        """Entries of the largest block for a program, at most."""
        one_way = min(2 * self.edges, self.rows)
        whole = 2 * self.edges
        if self.directed and program.view != "either":
            whole = one_way if program.view == "in" else 2 * one_way
        return -(-whole // self.blocks_of(program))

    @property
    def cuts(self) -> list[int]:
        """The blocks of each cut of the graph. It is cut once, and again for each program with other entries or blocks
        than the program before.
        """
        kinds = [(self.blocks_of(own), own.view if self.directed else "both", own.weighted) for own in self.programs]
        return [kind[0] for kind, before in zip(kinds, [None, *kinds], strict=False) if kind != before]

    def tasks(self, layout: Layout) -> int:
        """Tasks of all programs, as `programs.running` tells them."""
        from ..programs.running import program_tasks  # imports programs and their kernels

        return program_tasks(layout, list(map(self.blocks_of, self.programs)), self.cuts, self._places_blocks)

    @property
    def _places_blocks(self) -> bool:
        return not all(own.in_one_block for own in self.programs)

    def vertices_of(self, program: PlannedProgram) -> int:
        """Vertices of a block for a program."""
        return -(-self.vertices // self.blocks_of(program))

    def _symmetric(self, program: PlannedProgram) -> bool:
        return self.blocks_of(program) == 1 and not (self.directed and program.view == "in")

    @property
    def building_bytes(self) -> int:
        """Memory of a worker while its block is built."""
        return max(map(self._building_bytes_of, self.programs), default=0)

    def _building_bytes_of(self, program: PlannedProgram) -> int:
        alone = self.blocks_of(program) == 1
        entry, weight = BUILD_BYTES if alone else BUILD_BYTES_IN_BLOCKS, BUILD_WEIGHT_BYTES
        if alone and not self.directed:
            entry, weight = BUILD_BYTES_ONCE, BUILD_WEIGHT_BYTES_ONCE
        return self.entries(program) * (entry + weight * program.weighted) + 8 * self.vertices_of(program)

    @property
    def running_bytes(self) -> int:
        """Memory of a worker while a program runs on its CPU."""
        return max(map(self._running_bytes_of, self.programs), default=0)

    def _running_bytes_of(self, program: PlannedProgram) -> int:
        entry = (12 if program.weighted else 4) + GRAPH_BYTES * program.in_one_block
        copies = 2 if program.reversed and not self._symmetric(program) else 1
        return self.entries(program) * entry * copies + self.vertices_of(program) * program.vertex_bytes

    @property
    def bytes(self) -> int:
        """Memory of a worker for programs."""
        return max(self.building_bytes, self.running_bytes)

    @property
    def bytes_in_files(self) -> int:
        """Memory of a worker for programs if entries are in files, besides the pieces that are read. Those of a program
        that needs all edges are in memory.
        """
        sizes = [
            self._running_bytes_of(own)
            if own.in_one_block
            else self.vertices_of(own) * own.vertex_bytes + 5 * self.vertices
            for own in self.programs
        ]
        return max(sizes, default=0)

    @property
    def in_one_block(self) -> str:
        """The name of a program that needs all edges; empty if none does."""
        return next((own.name for own in self.programs if own.in_one_block), "")

    @property
    def bytes_with_pieces(self) -> int:
        """The same as `bytes_in_files`, with the pieces."""
        return self.bytes_in_files + int(FILL * self.capacity.memory_bytes * SHARE_OF_PIECES)

    def describe(self, in_files: bool) -> list[tuple[str, str]]:
        """Lines of the plan: name and text."""
        where = "1 block" if self.blocks == 1 else f"{self.blocks} blocks, one on each worker"
        listed = ", ".join(f"{own.name} ({self.order_of(own)})" for own in self.programs)
        largest = float(f"{max(map(self.entries, self.programs)):.3g}")
        lines = [("programs", f"{listed}; {where} of ~{largest:,.0f} entries")]
        building, running = (f"~{format_bytes(size)}" for size in (self.building_bytes, self.running_bytes))
        how = f"{building} a worker while blocks are built, {running} while programs run on CPUs"
        if in_files:
            how += f"; entries in files, ~{format_bytes(self.bytes_in_files)} for vertices"
        lines.append(("", how))
        if told := [text for own in self.programs if (text := self._seconds_text(own))]:
            lines.append(("on CPUs", ", ".join(told)))
        return lines + [("on GPUs", text) for own in self.programs if (text := self._cost_text(own))]

    def _seconds_text(self, program: PlannedProgram) -> str | None:
        seconds = self.seconds(program)
        if seconds is None or self.cost(program) is not None:
            return None
        likely = program.likely_steps or 1
        about = "" if likely == program.supersteps else "~"
        return f"{program.name} ~{seconds:.2g} s" + (f" for {about}{likely:,} supersteps" if likely > 1 else "")

    def _cost_text(self, program: PlannedProgram) -> str | None:
        cost = self.cost(program)
        if cost is None or not (cost.streamed or program.supersteps):
            return None
        where = f"~{format_bytes(cost.whole_bytes)} of edges"
        if cost.streamed:
            where += f", of which ~{format_bytes(cost.kept)} stay and ~{format_bytes(cost.copied)} are copied in each"
            where += " superstep that reads all"
        if program.supersteps is None:
            return f"{program.name}: {where}"
        steps = f"~{cost.step_seconds:.2g} s a superstep, ~{self.seconds(program):.2g} s for {program.supersteps:,}"
        return f"{program.name}: {where}; {steps}"

    def seconds(self, program: PlannedProgram) -> float | None:
        """Predicted seconds of supersteps that sum on GPUs, where exchanges are left out, and of programs in one
        block on CPUs; None if they are not known.
        """
        cost = self.cost(program)
        if cost is None:
            return self._seconds_on_cpus(program)
        if program.supersteps is None:
            return None
        return cost.seconds(program.supersteps) + cost.pinning_seconds

    def _seconds_on_cpus(self, program: PlannedProgram) -> float | None:
        cost, steps = program.cost, program.likely_steps
        if self.blocks_of(program) > 1 or cost is None or steps is None or program.weighted != cost.weighted:
            return None
        return program_seconds(cost, steps, self.entries(program), self.vertices, self.capacity.kernel_threads)

    @property
    def all_seconds(self) -> dict[str, float]:
        """The predicted seconds of programs by name, where they are known, to milliseconds."""
        found = {own.name: self.seconds(own) for own in self.programs}
        return {name: round(seconds, 3) for name, seconds in found.items() if seconds is not None}

    def document(self) -> dict[str, object]:
        """The plan of programs as JSON values."""
        return {
            "blocks": self.blocks,
            "building_bytes": self.building_bytes,
            "running_bytes": self.running_bytes,
            "programs": [self._facts(own) for own in self.programs],
        }

    def _facts(self, program: PlannedProgram) -> dict[str, object]:
        cost = self.cost(program)
        return {
            "name": program.name,
            "order": self.order_of(program),
            "entries": self.entries(program),
            "supersteps": program.supersteps,
            "edges_on_gpu_bytes": None if cost is None else cost.kept,
            "copied_bytes": None if cost is None else cost.copied,
            "seconds": self.all_seconds.get(program.name),
        }

    def order_of(self, program: PlannedProgram) -> str:
        """The order of supersteps: synchronous, asynchronous, or auto, which the run decides by its exchanges."""
        if not program.relaxed or self.order == "synchronous" or (self.order == "auto" and self.blocks == 1):
            return "synchronous"
        return self.order

    def cost(self, program: PlannedProgram) -> StreamCost | None:
        """What a superstep that reads all entries costs on a GPU; None where the program runs on the CPU."""
        capacity = self.capacity
        if not capacity.device_bytes or not program.on_device:
            return None
        sharing = self.blocks if capacity.in_process else 1
        free = max(
            0, int(DEVICE_FILL * capacity.device_bytes / sharing) - DEVICE_VERTEX_BYTES * self.vertices_of(program)
        )
        room = free if self.topology_limit is None else self.topology_limit // sharing
        entry = 12 if program.weighted else 4
        return StreamCost(self.entries(program), self.vertices_of(program), entry, room)
