"""The interface of a vertex program: functions over arrays of vertices, for any array type.

A program runs in supersteps. In each superstep, every sending vertex emits a value. The values that reach a vertex over
its in-edges are combined to one value, from which the vertex computes its new state. The functions get arrays of some
vertices of a block. Their result for a vertex must depend on that vertex only, so that no partitioning changes it.

An `EdgeProgram` computes values of edges from both ends and the number of triangles, after a program has ended or
without one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...kernels.graph import InRows
from ...kernels.runtime.sizes import SizedArrays
from ..errors import InternalError
from ..verify.program_checks import CheckByArcs, CheckByEdges, CheckGroups

Array: TypeAlias = NDArray[Any]
State: TypeAlias = Mapping[str, Array]
Forms: TypeAlias = Mapping[str, Callable[..., Any]]
Combine: TypeAlias = Literal["sum", "min", "max", "any", "argmin", "first", "mode", "hindex", "links", "top"]
View: TypeAlias = Literal["in", "both", "either"]

VertexId: TypeAlias = Annotated[int, "vertex"]
"""The type of a parameter that names a vertex: settings have its id, and the program gets its dense number."""
VertexIds: TypeAlias = Annotated[tuple[int, ...], "vertices"]
"""The type of a parameter that names any number of vertices: the program gets their dense numbers."""


@dataclass(frozen=True)
class Column:
    """A published column of a program: an array of its `state`, or one of its `edges`."""

    meaning: str
    """What a value says: one sentence."""
    name: str = ""
    """Its name in the table. By default that of the program, with that of the array if there are several columns. A
    program that the user gives another name has these default names.
    """
    missing: float | None = None
    """The value that is null in the table; None if none is. For the type `id` it is -1."""


@dataclass(frozen=True)
class Groups:
    """Groups that contain each other, found from levels of edges."""

    column: str
    """The array of the state that becomes the id of the innermost group of each vertex: an int64, -1 without edges. The
    table of groups has the name of its published column, with an s."""
    level: int | None = None
    """The level of the groups that are listed where none is named; None for those that contain no smaller group."""
    check: CheckGroups | None = None
    """As `Program.check`, of the table."""


@dataclass(frozen=True)
class Cost:
    """What a plan predicts the seconds of a program from: measured in one block on two threads of a CPU."""

    entry: float
    """Seconds for each entry that a superstep reads."""
    vertex: float = 0.0
    """Seconds for each vertex in a superstep."""
    threads: float = -0.6
    """Exponent of the number of threads. The default is that of GAP's code from 2 to 16 threads on R-MAT 20."""
    in_all: bool = False
    """Whether these are the seconds of all supersteps together."""
    weighted: bool = False
    """Whether they were measured on edges with weights; for others they are not known."""


class Vertices:
    """Vertices of a block, in ascending order of dense numbers. Each attribute is an array [vertices].

    Attributes are the arrays of the program's state; `number`, the dense number, which ascends with the id;
    `in_degree`, the number of entries in the vertex's row; `out_degree`, the number of entries with the vertex as
    source; and, for a program that `weighs`, `out_weight`, the sum of these entries' weights. Programs must not write
    to them: arrays of NumPy refuse it, and those of CuPy are copies for programs of the user.
    """

    total: int
    """Number of vertices of the graph."""
    step: int
    """Number of completed supersteps."""

    def __init__(
        self, arrays: Mapping[str, Array], total: int, step: int, rows: Array | None = None, guarded: bool = False
    ) -> None:
        self.total, self.step = total, step
        self.guarded = guarded
        """Whether `changed` tells of writes to the arrays, which are copies then. CuPy has no read-only arrays."""
        self._arrays, self._rows = arrays, rows
        self._before: dict[str, Array] = {}

    def __getattr__(self, name: str) -> Array:
        if name.startswith("_") or name not in self._arrays:
            raise AttributeError(f"vertices have {', '.join(self._arrays)}, no {name}")
        whole = self._arrays[name]
        found: Array = whole.view() if self._rows is None else whole[self._rows]
        if self.guarded:
            self._before[name], found = found, found.copy()
        elif isinstance(found, np.ndarray):
            found.flags.writeable = False
        self.__dict__[name] = found
        return found

    def __len__(self) -> int:
        return len(self._arrays["number"] if self._rows is None else self._rows)

    def at(self, rows: Array) -> Vertices:
        """The vertices at some rows. Only for an object with all vertices of a block."""
        return Vertices(self._arrays, self.total, self.step, rows, self.guarded)

    def changed(self) -> str | None:
        """The name of an array that was changed after it was read, if the vertices are `guarded`."""
        for name, before in self._before.items():
            bits = f"u{before.itemsize}"
            if bool((self.__dict__[name].view(bits) != before.view(bits)).any()):
                return name
        return None

    def part(self, piece: slice) -> Vertices:
        """Some of these vertices, next to each other."""
        if self._rows is not None:
            return self.at(self._rows[piece])
        cut = {name: whole[piece] for name, whole in self._arrays.items()}
        return Vertices(cut, self.total, self.step, None, self.guarded)

    @property
    def is_block(self) -> bool:
        """Whether these are all vertices of a block."""
        return self._rows is None

    @property
    def on_host(self) -> bool:
        """Whether the arrays are NumPy's."""
        return isinstance(self._arrays["number"], np.ndarray)

    def full(self, value: Any, dtype: Any = "float64") -> Array:
        """[vertices] an array of one value."""
        found: Array = np.full_like(self._arrays["number"], value, dtype=dtype, shape=(len(self),))
        return found


@dataclass(frozen=True)
class Best:
    """The combined values of `argmin`."""

    value: Array
    """[vertices] the smallest received value."""
    source: Array
    """[vertices] dense number of the first source with this value."""
    sent: Array
    """[vertices] what this source emitted: the value before the weight of the edge."""


@dataclass(frozen=True)
class EdgeFacts:
    """Facts of all edges of a graph, the same for any number of blocks."""

    vertices: int
    """Number of vertices."""
    entries: int
    """Number of in-edges of all vertices."""
    mean_weight: float
    """Mean weight of a sample of the edges; 1 without weights."""
    on_device: bool
    """Whether they are on GPUs."""
    at_once: bool = False
    """Whether supersteps are those of `Program.at_once`, which cost little more than their edges."""


@dataclass(frozen=True)
class GroupsBefore:
    """The groups that a program found in an earlier result, for the vertices of a graph."""

    of_vertex: Array
    """[vertices] the group of each vertex at level 1, int64; -1 for a vertex that the earlier result does not have."""
    levels: tuple[Array, ...]
    """[levels, vertices] the groups at each level, int32 from 0 to the number of vertices; such a vertex is alone."""
    facts: Mapping[str, Any]
    """The facts of the program in the earlier result."""


@dataclass(frozen=True)
class OneBlockGraph:
    """All edges of a graph, in one block on a CPU, or for a program that is `at_once_on_gpus` also on a GPU. For a
    `GraphProgram` that has `device_bytes`, only the rows are there.
    """

    number: Array
    """[vertices] dense numbers, ascending; other vertices are their positions here."""
    rows: InRows
    """[vertices] the sources of each vertex."""
    out: Callable[[], InRows]
    """Makes the targets of each vertex, [vertices]."""
    symmetric: bool
    """Whether both are the same."""
    facts: Callable[[], EdgeFacts]
    """Samples the edges."""
    before: GroupsBefore | None = None
    """For a program that `begins_with_groups`, if there is an earlier result of it."""

    @property
    def _has_all(self) -> bool:
        """Whether the numbers of vertices are their positions."""
        return not len(self.number) or int(self.number[-1]) == len(self.number) - 1

    def position_of(self, number: int) -> int | None:
        """The position of a vertex; None if it is not there."""
        if self._has_all:
            return number if 0 <= number < len(self.number) else None
        found = int(np.searchsorted(self.number, number))
        return found if found < len(self.number) and int(self.number[found]) == number else None

    def numbers_of(self, position: Array) -> Array:
        """The dense numbers of vertices; -1 for position -1. May be `position`."""
        if self._has_all:
            return position
        return np.where(position < 0, -1, self.number[position]).astype(position.dtype)


@dataclass(frozen=True)
class PairRows(SizedArrays):
    """Pairs of a vertex and one that is similar to it, sorted by source and rank. `len()` is the number of rows."""

    source: NDArray[np.int64]
    """[rows] dense numbers."""
    target: NDArray[np.int64]
    """[rows] dense numbers."""
    rank: NDArray[np.int32]
    """[rows] 1 for the vertex that is most similar to the source, and so on."""
    similarity: NDArray[np.float64]
    """[rows]"""

    def __len__(self) -> int:
        return len(self.source)


@dataclass(frozen=True)
class Found:
    """What `Program.at_once` returns."""

    state: State
    """May lack arrays that are no result."""
    steps: int
    """Supersteps that would have been run."""
    entries: int
    """Entries of rows that were read."""
    then: Program | None = None
    """A program that goes on from the state."""
    moved: float = 0
    """The total change in the last superstep."""
    facts: Mapping[str, Any] = field(default_factory=dict)
    """Facts of the whole graph by name, as JSON values."""
    levels: Sequence[Array] = ()
    """For `Program.groups`: of each vertex an int32 at each level. In `Program.levels` vertices have them by the names
    of `level_names`."""
    similar: PairRows | None = None
    """Pairs, of a program that `finds_similar`."""


def level_names(levels: int) -> list[str]:
    """The names of the arrays `Found.levels`."""
    return [f"level_{k}" for k in range(1, levels + 1)]


@dataclass(frozen=True)
class Top:
    """The combined values of `top`, in descending order; equal values in the order of their sources."""

    value: Array
    """[vertices, k] the largest received values. Where a vertex received fewer, the smallest value of the type."""
    source: Array
    """[vertices, k] the dense numbers of their sources; -1 where a vertex received fewer."""


class Totals:
    """Sums over all vertices of the graph, by name: int for integers and booleans, else float."""

    def __init__(self, sums: Mapping[str, int | float]) -> None:
        self.__dict__.update(sums)

    def __getattr__(self, name: str) -> Any:
        raise AttributeError(f"the program has no total {name}")


class Program(ABC):
    """Base of programs.

    A subclass is a frozen dataclass whose fields are the parameters. It must define `start`, `emit` and `apply`. Its
    docstring states source, semantics, rule for ties, precision, convergence and cost.
    """

    state: ClassVar[Mapping[str, str]]
    """Names and types of the state's arrays: `bool`, `int32`, `int64`, `float32`, `float64`; or `id`, int64 dense
    numbers of vertices, with -1 for none, which are published as ids.
    """

    columns: ClassVar[Mapping[str, Column]] = {}
    """The arrays of the state that are published, and what is said of them and of `edges`. By default all of them."""

    cost: ClassVar[Cost | None] = None
    """What a plan predicts its seconds from; None if they are not known before it runs."""

    check: ClassVar[CheckByEdges | CheckByArcs | None] = None
    """How `edgemill verify` checks the columns of a program of edgemill, by code that shares nothing with the program;
    None if it does not.
    """

    constant: ClassVar[tuple[str, ...]] = ()
    """Names of arrays of the state that do not change: `apply` leaves them out."""

    combine: ClassVar[Combine]
    """How the values that reach a vertex are combined.

    `sum` of float64; `min`, `max` of int32, int64 or float64; `any` of booleans; `argmin`: as `min`, with the dense
    number of the first source of that value; `first`: the dense number of the first sending source; `mode`: the most
    frequent integer, the smallest of several, -1 without values; `hindex`: the largest k such that k integers are at
    least k; `links`: the number of edges between the sources, int64, for view "either"; `top`: the `k` largest values
    with their sources.
    """

    k: int = 1
    """Number of values that `top` keeps."""

    along: ClassVar[Literal["", "add", "multiply"]] = ""
    """How the weight of an edge changes a value, for `sum`, `min`, `max` and `argmin` of float64."""

    view: ClassVar[View] = "in"
    """The in-edges of a vertex: `in`, edges that lead to it; `both`, edges that lead to it or from it; `either`, one
    edge for each neighbour, without loops. Edges of an undirected graph lead both ways.
    """

    senders: ClassVar[Literal["all", "changed"]] = "all"
    """The vertices that send: all, or those that changed in the last superstep.

    "changed" is for `min`, `max`, `argmin` and `first`, and for `mode` and `hindex`, which combine the last values of
    all sources. A vertex that receives nothing keeps its state, and the run ends when no vertex changes.
    """

    monotone: ClassVar[bool] = False
    """Whether the order of supersteps does not matter, so that the program may run asynchronously.

    It declares: the state of a vertex only moves in one direction, values that arrive late, early, or twice change
    nothing in the end, and no function uses `v.step`. For `senders` "changed" with `min`, `max` or `hindex`.
    """

    spreads: ClassVar[bool] = False
    """Whether a vertex sends the smallest value that it has had or received, unchanged, as components do.

    Then a superstep takes a value to all vertices that edges of the block connect, so the number of supersteps depends
    on the partitioning, but the result does not. For `min` of int32 or int64, view "both" and `senders` "changed".
    """

    bound: ClassVar[str] = ""
    """The name of an array of the state, of the type of the emitted values: a vertex receives only values that are
    better than its own, for `min`, `max` and `argmin` with `senders` "changed". A value that is not better is dropped
    when it is read, so `apply` runs for fewer vertices.
    """

    alternates: ClassVar[bool] = False
    """Whether values go against the edges in every second superstep: forwards where `v.step` is even, and where it is
    odd, each vertex receives from the targets of its out-edges.

    For view "in" and `senders` "all", without `along` and `message`. It runs on CPUs, with its edges in memory twice if
    they are directed.
    """

    at_once_on_gpus: ClassVar[bool] = False
    """Whether `at_once` takes a graph on a GPU, too."""

    forms_on_gpus: ClassVar[bool] = False
    """Whether `forms` takes a block on a GPU, too."""

    at_once_in_place: ClassVar[bool] = False
    """Whether it also takes an undirected graph on a GPU with entries in pinned host memory. They are read over the
    link, without a copy, so that rows should be read once, and only as far as needed.
    """

    edges: ClassVar[Mapping[str, str]] = {}
    """Names and types of columns of the table of edges, which `of_edges` computes in the end. They need λ.
    """

    groups: ClassVar[Groups | None] = None
    """The groups that are found when the program has ended: for each k, what edges of level k or more connect, where
    `levels` has the level of each edge. They become a table.
    """

    finds_similar: ClassVar[bool] = False
    """For `similar_pairs`. Whether `at_once` finds pairs, which become a table."""

    by_support: ClassVar[bool] = False
    """Whether the weight of an edge is its support, the number of triangles that contain it, not a weight of the input.
    It needs λ in the run. Directions are ignored.
    """

    nonnegative: ClassVar[bool] = False
    """Whether the weights that it uses must be at least 0."""

    @property
    def weighs(self) -> bool:
        """Whether the program uses `out_weight`, which takes an exchange of all weights."""
        return False

    @property
    def relaxed(self) -> Program | None:
        """A monotone program that continues from any state of this one to the same result; None if there is none.

        Its `start` gets vertices with the state of this program, and `v.step`.
        """
        return self if self.monotone else None

    @property
    def then(self) -> Program | None:
        """A program that runs when this one has ended. Its `start` gets vertices with the state of this program."""
        return None

    @abstractmethod
    def start(self, v: Vertices) -> tuple[State, Array]:
        """The initial state of each vertex, and which vertices send first; all arrays [vertices]."""

    @abstractmethod
    def emit(self, v: Vertices) -> Array:
        """[vertices] the value that each vertex sends: bool, int32, int64 or float64. Ignored for `first`."""

    def message(self, source: Vertices, weight: Array | None, target: Vertices) -> Array:
        """[edges] the value that each edge carries, as a function of its two ends and its weight.

        `source` has `value`, which the vertex emitted, and `number`; `target` all attributes; `weight` is None for
        edges without weights. A program that defines it takes about ten times as long as with `along`, since it
        computes arrays with an element for each edge. Not for `first` and `links`.
        """
        return source.value

    def priority(self, v: Vertices) -> Array | None:
        """[vertices] vertices with small values send first, in the asynchronous order, and with `window` also in the
        synchronous one. None for all at once.
        """
        return None

    def window(self, edges: EdgeFacts) -> float | None:
        """The width of windows of `priority`; None for no windows. For monotone programs, in the synchronous order.

        A vertex that changed sends when its priority is in the lowest window with such a vertex of any block; the
        others wait. A superstep is a round in which vertices send, so their number depends on the width; the result
        does not.
        """
        return None

    def totals(self, v: Vertices) -> State:
        """[vertices] values to sum over all vertices of the graph, without rounding, by name."""
        return {}

    def receives(self, v: Vertices) -> Array | None:
        """[vertices] whether received values can still change a vertex; None for all. Only for `senders` "changed"."""
        return None

    @abstractmethod
    def apply(self, v: Vertices, got: Any, t: Totals) -> tuple[State, Array]:
        """The new state of each vertex, and how much it changed, or whether; all arrays [vertices]."""

    def forms(self, v: Vertices) -> Forms:
        """Faster functions for a block whose vertices are `v`, by the names of those that they replace.

        They are for blocks on a CPU, and on a GPU if the program says `forms_on_gpus`.

        They give the same bits. `start`, `emit`, `totals` and `receives` get all vertices of the block. `totals` may
        leave out zeros, and `emit` may give other values that no vertex receives. `apply` also gets the arrays of the
        state, and the rows of its vertices or None for all; it writes the new values to these arrays and returns how
        much the vertices changed, or whether. Arrays that are returned may be reused in the next superstep.
        """
        return {}

    def at_once(self, graph: OneBlockGraph) -> Found | None:
        """The result for a graph in one block, with the bits that supersteps would give; None for supersteps.

        It is asked where no limit can stop the program.
        """
        return None

    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> State:
        """[edges] the columns `edges`, when the program has ended; see `EdgeProgram.of_edges`."""
        return {}

    def levels(self, low: Vertices, high: Vertices) -> Array:
        """[edges] the level of each edge, int32, at least 0, by the state of its ends; for `groups`."""
        raise InternalError("a program with groups has levels of edges")

    def converged(self, moved: float) -> bool:
        """Whether the run ends after a superstep with the total change `moved`."""
        return moved == 0

    @property
    def steps(self) -> int | None:
        """Number of supersteps after which the run ends in any case, or None."""
        return None

    @property
    def most_steps(self) -> int | None:
        """The most supersteps that the parameters allow, for the plan; None if they do not tell."""
        return self.steps

    @property
    def likely_steps(self) -> int | None:
        """How many of `most_steps` a run mostly takes, for the plan."""
        return self.most_steps


_NO_STEPS = "a program over the whole graph has no supersteps"


class GraphProgram(Program):
    """Base of programs that need the whole graph: one worker has all edges in memory, in one block, on its CPU, or on
    its GPU if `device_bytes` are free there.

    `at_once` is all that a subclass defines. Limits of supersteps and seconds do not end it.
    """

    combine = "min"
    view = "both"

    @property
    def begins_with_groups(self) -> bool:
        """Whether it begins with its groups in an earlier result."""
        return False

    @abstractmethod
    def at_once(self, graph: OneBlockGraph) -> Found:
        """The result. The entries of a vertex are its edges in both directions, with their weights if it `weighs`."""

    def vertex_bytes(self, threads: int) -> int:
        """Memory that the result and a number of threads take for each vertex, for the plan."""
        return 0

    def device_bytes(self, entries: int, vertices: int) -> int | None:
        """Memory of a GPU that it takes, with its block; None if it runs on CPUs alone.

        Results of GPUs and CPUs have the same bits. `at_once` gets rows on the GPU then, and numbers on the host.
        """
        return None

    def start(self, v: Vertices) -> tuple[State, Array]:
        """Not called, and neither are `emit` and `apply`."""
        raise InternalError(_NO_STEPS)

    def emit(self, v: Vertices) -> Array:
        raise InternalError(_NO_STEPS)

    def apply(self, v: Vertices, got: Any, t: Totals) -> tuple[State, Array]:
        raise InternalError(_NO_STEPS)


class EdgeProgram(ABC):
    """Base of programs that compute columns of the table of edges, without supersteps.

    A subclass is a frozen dataclass whose fields are the parameters. Its docstring states the same as that of a
    `Program`. An edge has no direction here: `low` is its end of smaller id.
    """

    edges: ClassVar[Mapping[str, str]]
    """Names and types of the columns: `bool`, `int32`, `int64`, `float32`, `float64`."""

    columns: ClassVar[Mapping[str, Column]] = {}
    """What is said of these columns, by name."""

    check: ClassVar[CheckByEdges | CheckByArcs | None] = None
    """As for `Program`."""

    by_support: ClassVar[bool] = False
    """As for `Program`: edges have no weights here."""

    @abstractmethod
    def of_edges(self, low: Vertices, high: Vertices, support: Array) -> State:
        """[edges] the columns by name.

        `low` and `high` are the ends: `number`, `degree` (the number of neighbours), and for a `Program` its state.
        `support` is the number of triangles that contain the edge, int32: the common neighbours of its ends. The value
        of an edge must depend on that edge only.
        """
