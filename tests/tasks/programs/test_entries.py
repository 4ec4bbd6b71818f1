"""Values of edges and the largest values of each row, against plain loops; and errors within a program's functions."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.device import MemorySpace
from edgemill.tasks.errors import ProgramError
from edgemill.tasks.programs import Program, Totals, Vertices, gathering
from edgemill.tasks.programs.orders.calls import Calls
from vertex_programs import Drawn, Where, by_blocks, graphs

TRIANGLE = Drawn(3, ((0, 1), (1, 2), (2, 0)), (2.0, 3.0, 5.0), True)


@dataclass(frozen=True)
class Messages(Program):
    """What one superstep combines of messages that depend on both ends and the weight."""

    combine_by: str = "sum"
    k: int = 2
    state: ClassVar = {"got": "float64", "source": "id"}

    @property
    def combine(self) -> Any:  # type: ignore[override]
        return self.combine_by

    @property
    def steps(self) -> int:
        return 1

    def start(self, v: Vertices) -> Any:
        return {"got": v.full(0.0), "source": v.full(-1, "int64")}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Any:
        return v.number * 2.0

    def message(self, source: Vertices, weight: Any, target: Vertices) -> Any:
        assert (source.value == source.number * 2).all()
        value = source.value * weight - target.in_degree
        return (
            value > 1 if self.combine == "any" else value.astype(int) if self.combine in ("mode", "hindex") else value
        )

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        if self.combine_by not in ("argmin", "top"):
            return {"got": got, "source": v.full(-1, "int64")}, v.full(True, "bool")
        at = ... if self.combine_by == "argmin" else (..., self.k - 1)
        return {"got": got.value[at], "source": got.source[at]}, v.full(True, "bool")


def h_index(values: list[int]) -> int:
    return max((k for k in range(len(values) + 1) if sum(value >= k for value in values) >= k), default=0)


def expected(combine: str, k: int, received: list[tuple[float, int]]) -> tuple[float, int]:
    """What a vertex gets from values with their sources, in the order of sources."""
    values = [value for value, _ in received]
    if combine == "argmin":
        return min(received, default=(np.inf, -1))
    if combine == "top":
        return [*sorted(received, key=lambda one: -one[0]), *[(-np.inf, -1)] * k][k - 1]
    whole = [int(value) for value in values]
    combinations: dict[str, Callable[[], Any]] = {
        "sum": lambda: sum(values),
        "min": lambda: min(values, default=np.inf),
        "max": lambda: max(values, default=-np.inf),
        "any": lambda: any(value > 1 for value in values),
        "mode": lambda: min(whole, key=lambda value: (-whole.count(value), value), default=-1),
        "hindex": lambda: h_index(whole),
    }
    return float(combinations[combine]()), -1


@given(
    graphs(),
    st.sampled_from(["sum", "min", "max", "any", "mode", "hindex", "argmin", "top"]),
    st.integers(1, 4),
    st.data(),
)
@settings(max_examples=60)
def test_messages_are_combined(graph: Drawn, combine: str, blocks: int, data: st.DataObject) -> None:
    rows: list[list[tuple[int, float]]] = [[] for _ in range(graph.vertices)]
    for (u, v), weight in zip(graph.edges, graph.weights, strict=True):
        rows[v].append((u, weight))
        if not graph.directed and u != v:
            rows[u].append((v, weight))
    k = data.draw(st.integers(1, 3))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(gathering.GatherEntries.__init__, "__defaults__", (data.draw(st.sampled_from([1, 3, 100])),))
        found = by_blocks(Messages(combine, k), graph, blocks).state
    for v, row in enumerate(rows):
        received = [(2.0 * u * weight - len(row), u) for u, weight in sorted(row, key=lambda one: one[0])]
        got, source = expected(combine, k, received)
        assert np.isclose(found["got"][v], got, rtol=1e-12) and found["source"][v] == source


@dataclass(frozen=True)
class Heaviest(Program):
    """The neighbours over the two heaviest edges, without `message`."""

    state: ClassVar = {"first": "id", "second": "id", "weight": "float64"}
    combine = "top"
    along = "add"
    k = 2

    @property
    def steps(self) -> int:
        return 1

    def start(self, v: Vertices) -> Any:
        nobody = v.full(-1, "int64")
        return {"first": nobody, "second": nobody, "weight": v.full(0.0)}, v.full(True, "bool")

    def emit(self, v: Vertices) -> Any:
        return v.full(0.0)

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        weight = np.where(got.source[:, 0] < 0, 0, got.value[:, 0])
        return {"first": got.source[:, 0], "second": got.source[:, 1], "weight": weight}, v.full(True, "bool")


@pytest.mark.parametrize("blocks", [1, 3])
def test_the_largest_values_of_a_row(blocks: int) -> None:
    graph = Drawn(5, ((0, 4), (1, 4), (2, 4), (3, 4), (4, 0)), (1.0, 7.0, 7.0, 3.0, 2.0), True)
    found = by_blocks(Heaviest(), graph, blocks).state
    assert found["first"].tolist() == [4, -1, -1, -1, 1]
    assert found["second"].tolist() == [-1, -1, -1, -1, 2]
    assert found["weight"].tolist() == [2.0, 0.0, 0.0, 0.0, 7.0]


@dataclass(frozen=True)
class Faulty(Messages):
    """Makes one mistake."""

    mistake: str = ""

    def start(self, v: Vertices) -> Any:
        return v.full(0.0) if self.mistake == "start" else super().start(v)

    def emit(self, v: Vertices) -> Any:
        return {"emit": [1.0], "raise": 1 / v.number.sum() if self.mistake != "raise" else 1 // 0}.get(
            self.mistake, v.number * 2.0
        )

    def message(self, source: Vertices, weight: Any, target: Vertices) -> Any:
        return weight[:1] if self.mistake == "message" else weight

    def totals(self, v: Vertices) -> Any:
        return 7 if self.mistake == "totals" else {}

    def apply(self, v: Vertices, got: Any, t: Totals) -> Any:
        state, moved = super().apply(v, got, t)
        match self.mistake:
            case "missing":
                return {"got": got}, moved
            case "dtype":
                return state | {"source": got}, moved
            case "moved":
                return state, moved.astype(str)
            case "attribute":
                return state | {"got": v.speed}, moved
            case "total":
                return state | {"got": v.full(t.mass)}, moved
            case "write":
                v.got[:] = got
        return state, moved


@pytest.mark.parametrize("blocks", [1, 2])
@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("start", "`start` in superstep 0: returns an array of shape"),
        ("emit", "`emit` in superstep 0: gives list for the emitted values, not an array with one value for each of"),
        (
            "raise",
            "`emit` in superstep 0: ZeroDivisionError: integer division or modulo by zero (test_entries.py",
        ),
        ("message", "`message` in superstep 0: gives an array of shape (1,) for the messages"),
        ("totals", "`totals` in superstep 0: returns int, not a dict of arrays"),
        ("missing", "`apply` in superstep 0: returns the arrays got; `state` has got, source"),
        ("dtype", "`apply` in superstep 0: the array 'source' is float64, and `state` says int64"),
        ("moved", "`apply` in superstep 0: the second array is <U5, not numbers"),
        ("attribute", "AttributeError: vertices have number, in_degree, out_degree, got, source, no speed"),
        ("total", "AttributeError: the program has no total mass (test_entries.py, line"),
        ("write", "`apply` in superstep 0: writes to "),
    ],
)
def test_an_error_names_program_function_superstep_and_line(mistake: str, message: str, blocks: int) -> None:
    if mistake == "moved" and Where.space is MemorySpace.DEVICE:
        pytest.skip("CuPy has no strings")
    graph = Drawn(4, ((0, 1), (2, 1), (1, 2), (3, 2), (2, 3), (1, 3)), (1.0,) * 6, True)
    with pytest.raises(ProgramError, match=re.escape(message)) as raised:
        by_blocks(Faulty(mistake=mistake), graph, blocks)
    assert str(raised.value).startswith(f"program {__name__}:Faulty, `")
    assert raised.value.exit_code == 9


def test_a_write_to_copies_is_found() -> None:
    """As on GPUs, where no array refuses it."""
    whole = {"number": np.arange(4), "got": np.array([np.nan, 1.0, 2.0, -0.0])}
    for vertices in (Vertices(whole, 4, 0, guarded=True), Vertices(whole, 4, 0, guarded=True).at(np.array([1, 3]))):
        vertices = vertices.part(slice(0, 2))
        vertices.number.sum()
        vertices.got.sum()
        assert vertices.changed() is None
        with pytest.raises(ProgramError, match=r"`apply`.*0.*'got'"):
            Calls(Faulty(mistake="write")).apply(vertices, np.zeros(2), Totals({}), {}, None)
    assert np.isnan(whole["got"][0]) and whole["got"][1:].tolist() == [1, 2, 0]


def test_weights_that_a_message_lacks() -> None:
    vertices = Vertices({"value": np.arange(3.0), "number": np.arange(3)}, 3, 0)
    with pytest.raises(ProgramError, match=r"edges have no weights, .*`weight` is None"):
        Calls(Messages()).message(vertices, None, vertices)


def test_integers_must_fit_their_type() -> None:
    @dataclass(frozen=True)
    class Large(Messages):
        state: ClassVar = {"got": "int32", "source": "id"}

        def start(self, v: Vertices) -> Any:
            return {"got": v.number + np.int64(2**40), "source": v.number}, v.full(True, "bool")

    with pytest.raises(ProgramError, match=r"'got'.*int32"):
        by_blocks(Large(), TRIANGLE, 1)
    vertices = Vertices({"number": np.arange(3)}, 3, 0)
    state, _ = Calls(Messages()).start(vertices)
    assert state["source"].dtype == np.int64
