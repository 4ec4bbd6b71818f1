"""The asynchronous order gives the same bits, with fewer exchanges, and only for programs that declare it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edgemill.tasks.programs import Program, Vertices, running
from edgemill.tasks.programs.orders import asynchronous
from edgemill.tasks.programs.shipped.bfs import BreadthFirst
from edgemill.tasks.programs.shipped.clustering import LocalClustering
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.shipped.coreness import Coreness
from edgemill.tasks.programs.shipped.labels import LabelPropagation
from edgemill.tasks.programs.shipped.pagerank import PageRank
from examples import examples
from vertex_programs import Drawn, by_blocks, graphs


@dataclass(frozen=True)
class Distances(Program):
    """The smallest sum of weights from vertex 0; near vertices send first."""

    state: ClassVar = {"distance": "float64"}
    combine = "min"
    along = "add"
    senders = "changed"
    monotone = True

    def start(self, v: Vertices) -> Any:
        return {"distance": np.where(v.number == 0, 0, np.inf)}, v.number == 0

    def emit(self, v: Vertices) -> Any:
        return v.distance

    def apply(self, v: Vertices, got: Any, t: Any) -> Any:
        return {"distance": np.minimum(got, v.distance)}, got < v.distance

    def priority(self, v: Vertices) -> Any:
        return v.distance


@dataclass(frozen=True)
class Smallest(Components):
    """Components by one edge a superstep."""

    spreads = False


@dataclass(frozen=True)
class MessagedDistances(Distances):
    """The same by messages."""

    along = ""  # type: ignore[assignment]

    def message(self, source: Vertices, weight: Any, target: Vertices) -> Any:
        return source.value + weight


IN_ANY_ORDER: list[Program] = [BreadthFirst(0), Components(), Coreness(), Distances(), MessagedDistances(), Smallest()]
GRID = Drawn(
    400,
    tuple((v, v + 1) for v in range(400) if v % 20 < 19) + tuple((v, v + 20) for v in range(380)),
    (1.0,) * 760,
    False,
)


@given(graphs(), st.sampled_from(IN_ANY_ORDER), st.integers(1, 16), st.booleans())
@settings(max_examples=examples(90))
def test_both_orders_give_the_same_bits(graph: Drawn, program: Program, blocks: int, by_range: bool) -> None:
    whole = by_blocks(program, graph, 1).state
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asynchronous, "FEWEST_BY_PRIORITY", 2)
        patch.setitem(running.EXCHANGE_ENTRIES, "memory", 20)
        for order in ("asynchronous", "auto"):
            found = by_blocks(program, graph, blocks, by_range, order=order)
            assert found.converged
            for name, values in whole.items():
                assert values.tobytes() == found.state[name].tobytes()


@pytest.mark.parametrize(
    "program", [Coreness(), Distances(), MessagedDistances(), Smallest()], ids=lambda program: type(program).__name__
)
def test_the_asynchronous_order_exchanges_less_on_a_grid(program: Program) -> None:
    in_step, alone = (by_blocks(program, GRID, 4, True, order=order) for order in ("synchronous", "asynchronous"))
    assert (in_step.order, alone.order) == ("synchronous", "asynchronous")
    assert 2 * alone.exchanges < in_step.exchanges == in_step.steps + 1
    for name, values in in_step.state.items():
        assert values.tobytes() == alone.state[name].tobytes()


def test_auto_switches_once_exchanges_cost_more_than_reads() -> None:
    dear, cheap = ({"memory": cost} for cost in (1e9, 0.1))
    for costs, order in ((dear, "asynchronous"), (cheap, "synchronous")):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(running, "EXCHANGE_ENTRIES", costs)
            found = by_blocks(Smallest(), GRID, 4, True, order="auto")
            assert found.order == order
            assert (found.steps == 39) == (order == "synchronous")
            assert by_blocks(Smallest(), GRID, 1, order="auto").order == "synchronous"


@pytest.mark.parametrize(
    "program", [PageRank(), LabelPropagation(3), LocalClustering()], ids=lambda p: type(p).__name__
)
def test_other_programs_never_run_asynchronously(program: Program, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "run_to_silence", lambda *_: pytest.fail("ran asynchronously"))
    monkeypatch.setitem(running.EXCHANGE_ENTRIES, "memory", 1e12)
    assert program.relaxed is None
    for order in ("asynchronous", "auto"):
        assert by_blocks(program, GRID, 4, order=order).order == "synchronous"


@pytest.mark.parametrize(("limits", "exchanges"), [({"most_steps": 3}, 3), ({"seconds": 0}, 1)])
def test_limits_stop_the_asynchronous_order(limits: dict[str, Any], exchanges: int) -> None:
    found = by_blocks(Smallest(), GRID, 4, order="asynchronous", **limits)
    assert (found.converged, found.exchanges) == (False, exchanges)
