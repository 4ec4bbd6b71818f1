"""`edgemill.try_program`: a program on a small graph in memory, without a cluster."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from ...tasks.errors import ProgramError, UsageError
from ..settings.declared_programs import parameters_of_kind

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from ...tasks.programs import EdgeProgram, Order, Program

AnyKind = TypeVar("AnyKind")

GROUPS = (1, 2, 3)
"""Numbers of groups that the vertices are divided among."""
MOST_STEPS = 10_000
"""Most supersteps of a trial."""


def try_program(
    program: Program | EdgeProgram,
    edges: Iterable[Sequence[Any]],
    *,
    directed: bool = False,
    vertices: Iterable[Any] = (),
    most_steps: int = MOST_STEPS,
) -> dict[str, dict[Any, Any]]:
    """Run a program on a small graph in this process, and check that it keeps to the interface.

    `edges` are pairs of ids, or triples of two ids and a weight; ids are integers or texts. Loops are left out, and so
    are edges that are given again, as in a run. `vertices` are ids of vertices without edges.

    Returns, for each array of the program's `state`, a mapping from id to value, and for each of its `edges`, a mapping
    from the ids of both ends, smaller first, to value. Arrays of type `id` have ids, or None
    for no vertex. Parameters of the type `VertexId` are ids in `program`.

    The program runs with the vertices in one group, two and three, and, if it is `monotone`, in the asynchronous order
    too. Raises ProgramError if a result differs, if a function fails or returns wrong arrays, and if the program has
    not ended after `most_steps` supersteps; UsageError for edges that are none.
    """
    from ...tasks.programs import EdgeProgram, GraphProgram
    from ...tasks.programs.orders.calls import check_declaration, name_of

    graph = _Graph(edges, directed, vertices)
    program = graph.with_numbers(program)
    check_declaration(program)
    if isinstance(program, EdgeProgram):
        return graph.of_edges(program, {})
    first: dict[str, NDArray[Any]] | None = None
    for groups in GROUPS[:1] if isinstance(program, GraphProgram) else GROUPS:
        for order in _orders(program, groups):
            state, converged = graph.run(program, groups, order, most_steps)
            if not converged:
                raise ProgramError(
                    f"program {name_of(program)} has not ended after {most_steps:,} supersteps: "
                    "define `converged` or `steps`"
                )
            if first is None:
                first = state
            for array, values in state.items():
                _compare(name_of(program), graph.ids, array, first[array], values, groups, order)
    assert first is not None
    of_edges = graph.of_edges(program, first) if program.edges else {}
    return {array: graph.named(values, program.state[array]) for array, values in first.items()} | of_edges


def _orders(program: Program, groups: int) -> tuple[Order, ...]:
    return ("synchronous",) if program.relaxed is None or groups == 1 else ("synchronous", "asynchronous")


class _Graph:
    """A graph in memory. Vertices have numbers in the order of their ids."""

    def __init__(self, edges: Iterable[Sequence[Any]], directed: bool, vertices: Iterable[Any]) -> None:
        self.directed = directed
        rows = [tuple(edge) for edge in edges]
        lengths = set(map(len, rows))
        if not lengths <= {2} and not lengths <= {3}:
            raise UsageError("edges: must be pairs of ids, or all triples of two ids and a weight")
        ids = {*vertices, *(end for row in rows for end in row[:2])}
        if not all(isinstance(one, int) for one in ids) and not all(isinstance(one, str) for one in ids):
            raise UsageError("edges: ids must be all integers or all texts")
        self.ids = sorted(ids)
        number = {one: at for at, one in enumerate(self.ids)}
        self.edges: dict[tuple[int, int], float] = {}
        for source, target, *weight in rows:
            ends = (number[source], number[target])
            if not directed:
                ends = (min(ends), max(ends))
            if ends[0] != ends[1]:
                self.edges.setdefault(ends, float(weight[0]) if weight else 1.0)
        self.weighted = lengths == {3}

    def with_numbers(self, program: AnyKind) -> AnyKind:
        """The program with the dense numbers of the vertices in its parameters. Raises UsageError for unknown ids."""
        numbers: dict[str, Any] = {}
        kind: Any = type(program)
        for name, parameter in parameters_of_kind(kind).items():
            if parameter.is_vertex or parameter.is_vertices:
                given = getattr(program, name)
                named = given if parameter.is_vertices else (given,)
                if unknown := [one for one in named if one not in self.ids]:
                    raise UsageError(f"{name}: no vertex has the id {unknown[0]!r}")
                found = tuple(self.ids.index(one) for one in named)
                numbers[name] = found if parameter.is_vertices else found[0]
        known: Any = program
        return dataclasses.replace(known, **numbers) if numbers else program

    def run(self, program: Program, groups: int, order: Order, most_steps: int) -> tuple[dict[str, NDArray[Any]], bool]:
        """The state [vertices], and whether the program ended by itself."""
        import numpy as np

        from ...tasks.partition import HashPartitioner
        from ...tasks.programs import Entries, cut_blocks, run_blocks
        from ...tasks.shards import MemoryCarrier

        ends = np.array(list(self.edges), np.int32).reshape(-1, 2)
        weight = np.array(list(self.edges.values()), np.float64) if self.weighted else None
        directed = self.directed
        if program.by_support:
            pairs, support, _ = self._supports()
            ends, weight, directed = np.array(pairs, np.int32).reshape(-1, 2), support.astype(np.float64), False
        entries = Entries(ends[:, 0].copy(), ends[:, 1].copy(), weight)
        home = HashPartitioner(groups)
        blocks = cut_blocks(entries, len(self.ids), home, directed, program.view)
        carriers = MemoryCarrier.open(groups)
        found = run_blocks(program, blocks, home, carriers, threads=1, most_steps=most_steps, order=order)
        by = np.argsort(np.concatenate([own.number for own in found]))
        state = {name: np.concatenate([own.state[name] for own in found])[by] for name in program.state}
        return state, found[0].converged

    def of_edges(
        self, program: Program | EdgeProgram, state: Mapping[str, NDArray[Any]]
    ) -> dict[str, dict[tuple[Any, Any], Any]]:
        """The columns of edges, by the ids of both ends."""
        import numpy as np

        from ...tasks.programs import Vertices
        from ...tasks.programs.orders.calls import Calls

        ends, support, degree = self._supports()
        arrays = {"number": np.arange(len(self.ids)), "degree": degree, **state}
        rows = np.array(ends, np.int64).reshape(-1, 2)
        both = [Vertices(arrays, len(self.ids), 0, rows[:, end].copy()) for end in (0, 1)]
        columns = Calls(program).of_edges(both[0], both[1], support)
        names = [(self.ids[one], self.ids[other]) for one, other in ends]
        return {name: dict(zip(names, values.tolist(), strict=True)) for name, values in columns.items()}

    def _supports(self) -> tuple[list[tuple[int, int]], NDArray[np.int32], NDArray[np.int64]]:
        """The edges whatever their direction, sorted, each with its number of triangles; and [vertices] degrees."""
        import numpy as np

        ends = sorted({(min(edge), max(edge)) for edge in self.edges})
        neighbours: list[set[int]] = [set() for _ in self.ids]
        for low, high in ends:
            neighbours[low].add(high)
            neighbours[high].add(low)
        support = np.array([len(neighbours[low] & neighbours[high]) for low, high in ends], np.int32)
        return ends, support, np.array([*map(len, neighbours)], np.int64)

    def named(self, values: NDArray[Any], kind: str) -> dict[Any, Any]:
        """Id → value."""
        plain = values.tolist()
        if kind == "id":
            plain = [None if number < 0 else self.ids[number] for number in plain]
        return dict(zip(self.ids, plain, strict=True))


def _compare(
    name: str,
    ids: Sequence[Any],
    array: str,
    one: NDArray[np.generic],
    other: NDArray[np.generic],
    groups: int,
    order: Order,
) -> None:
    if one.tobytes() == other.tobytes():
        return
    at = next(at for at in range(len(ids)) if one[at].tobytes() != other[at].tobytes())
    found = f"{array!r} of vertex {ids[at]!r} is {one[at]} with one group, and {other[at]} with {groups} groups"
    if order == "asynchronous":
        raise ProgramError(
            f"program {name} is not monotone: {found} in the asynchronous order. Leave `monotone` out, or let the "
            "state of a vertex move in one direction only"
        )
    raise ProgramError(
        f"program {name}: the result depends on the partition: {found}. What a function returns for a vertex must "
        "depend on that vertex alone; use `totals` for sums over all vertices"
    )
