"""The state of a result: what is written is read, and what is damaged is not."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edgemill.kernels.graph import Topology
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.update.merging import NumberedGraph
from edgemill.tasks.update.order import Order
from edgemill.tasks.update.state import State, read_state, write_state
from edgemill.tasks.update.state_index import NoState, carry_state, has_state


def state(text: bool = False) -> State:
    values = np.arange(3, dtype=np.int32)
    ids = pa.array(["", "z", "é"], pa.large_string()) if text else np.array([-5, 7, 2**40])
    edges = Topology(np.array([0, 0, 1], np.int32), np.array([1, 2, 2], np.int32), 3)
    return State(NumberedGraph(ids, edges), Order(values, values + 1, values * 0 + 2, values // 2), values[:2])


def same(found: State, wanted: State) -> bool:
    ids = [list(own.graph.ids) for own in (found, wanted)]
    arrays = [
        (own.graph.edges.low, own.graph.edges.high, own.forest, *vars(own.order).values()) for own in (found, wanted)
    ]
    return ids[0] == ids[1] and all(np.array_equal(*pair) for pair in zip(*arrays, strict=True))


@pytest.mark.parametrize("text", [False, True])
def test_it_is_read_as_written(tmp_path: Path, text: bool) -> None:
    for place in (Folder(str(tmp_path / "a")), Folder(f"memory://states/{tmp_path.name}")):
        assert not has_state(place)
        write_state(place, "r1", state(text))
        assert has_state(place) and same(read_state(place, "r1"), state(text))


@pytest.mark.parametrize("most", [255, 256, 2**16 - 1, 2**16, 2**31 - 1])
@pytest.mark.parametrize("step", [8, 2**24])
def test_values_of_any_width(tmp_path: Path, most: int, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """They take as few bytes as they need, and are int32 again, which can be written to, in one piece or several."""
    monkeypatch.setattr("edgemill.tasks.update.state._STEP", step)
    values = np.array([0, most // 2, most], np.int32)
    wide = replace(state(), order=replace(state().order, time=values))
    write_state(Folder(str(tmp_path / "a")), "r1", wide)
    found = read_state(Folder(str(tmp_path / "a")), "r1")
    assert same(found, wide)
    for array in (found.graph.edges.low, found.graph.edges.high, found.forest, *vars(found.order).values()):
        assert array.dtype == np.int32 and array.flags.writeable and array.flags.c_contiguous
    assert (tmp_path / "a" / "time").stat().st_size == 3 * (1 if most < 256 else 2 if most < 2**16 else 4)


@given(
    degrees=st.lists(st.one_of(st.just(0), st.integers(0, 9)), max_size=40), piece=st.sampled_from([1, 3, 10, 2**20])
)
def test_edges_of_any_vertices(degrees: list[int], piece: int) -> None:
    """The lower ends are found in pieces of any size; vertices without edges are between them."""
    low = np.repeat(np.arange(len(degrees), dtype=np.int32), degrees)
    above = [np.arange(1, degree + 1, dtype=np.int32) for degree in degrees]
    edges = Topology(low, low + np.concatenate([low[:0], *above]), len(degrees) + 9)
    graph = NumberedGraph(np.arange(len(degrees) + 9), edges)
    order = Order(*[np.zeros(len(low), np.int32)] * 4)
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr("edgemill.tasks.update.state._PIECE", piece)
        place = Folder(folder).subfolder("state")
        write_state(place, "r1", State(graph, order, low[:0]))
        assert same(read_state(place, "r1"), State(graph, order, low[:0]))


def test_an_empty_one(tmp_path: Path) -> None:
    none = np.zeros(0, np.int32)
    empty = State(NumberedGraph(np.zeros(0, np.int64), Topology(none, none, 0)), Order(none, none, none, none), none)
    write_state(Folder(str(tmp_path / "a")), "r1", empty)
    assert same(read_state(Folder(str(tmp_path / "a")), "r1"), empty)


def test_it_goes_over_to_the_next_run(tmp_path: Path) -> None:
    first, second = Folder(str(tmp_path / "a")), Folder(str(tmp_path / "b" / "r2"))
    write_state(first, "r1", state())
    carry_state(first, second, "r2")
    assert same(read_state(second, "r2"), state())
    assert (tmp_path / "a" / "high").stat().st_ino == (tmp_path / "b" / "r2" / "high").stat().st_ino
    with pytest.raises(NoState, match="run r2"):
        read_state(second, "r1")


@pytest.mark.parametrize("step", [8, 2**24])
@pytest.mark.parametrize("name", ["index.json", "lam", "ids"])
def test_damage_is_noticed(tmp_path: Path, name: str, step: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also in the last of several pieces that have checksums of their own."""
    monkeypatch.setattr("edgemill.tasks.update.state._STEP", step)
    place = Folder(str(tmp_path / "a"))
    write_state(place, "r1", state())
    file = tmp_path / "a" / name
    content = file.read_bytes()
    for damaged in (content[:-1], content[:-1] + bytes([content[-1] ^ 1]), b""):
        file.write_bytes(damaged)
        with pytest.raises(NoState, match="damaged"):
            read_state(place, "r1")
    file.unlink()
    with pytest.raises(NoState):
        read_state(place, "r1")
