"""States whose checksums are right and whose arrays are not those of a graph: a full run that says why."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from hashlib import sha256
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import runs
from edgemill.pipeline import Result, mine
from edgemill.tasks.storage.checksums import after_checksum_line, with_checksum_line
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.update.state import read_state
from edgemill.tasks.update.state_index import FILES, NoState
from examples import examples

FIRST = [(9 * c + u, 9 * c + v) for c in range(3) for u, v in combinations(range(7), 2)]
SECOND = [*FIRST, (500, 501), (500, 502), (501, 502)]
INTEGERS, TEXT = "integers", "text"


@pytest.fixture(scope="module")
def bases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Result]:
    """A result with integer ids, and one with text ids, directions and weights."""
    folder = tmp_path_factory.mktemp("bases")
    made = {}
    for kind in (INTEGERS, TEXT):
        change = int if kind == INTEGERS else lambda id: f"v{id:03}"
        for name, rows in (("first", FIRST), ("second", SECOND)):
            ends = [(change(u), change(v)) for u, v in rows]
            id_type = None if kind == INTEGERS else pa.string()
            runs.write_rows(folder / f"{kind}-{name}.parquet", ends, id_type)
        rows_file = folder / f"{kind}-first.parquet"
        made[kind] = mine(rows_file, folder / kind, device="cpu", report=False, incremental="auto")
    return made


def arrays_of(state: Path) -> dict[str, np.ndarray[Any, Any]]:
    index = json.loads(after_checksum_line((state / "index.json").read_bytes()))
    return {name: np.fromfile(state / name, file["dtype"]) for name, file in index["files"].items()}


def reseal(state: Path, arrays: dict[str, np.ndarray[Any, Any]], **facts: Any) -> None:
    """Write arrays with an index whose checksums are right."""
    index = json.loads(after_checksum_line((state / "index.json").read_bytes())) | facts
    index["files"] = {}
    for name, values in arrays.items():
        content = values.tobytes()
        (state / name).write_bytes(content)
        sums = [sha256(content).hexdigest()] if content else []
        index["files"][name] = {"dtype": values.dtype.str, "bytes": len(content), "sha256": sums}
    (state / "index.json").write_bytes(with_checksum_line(json.dumps(index).encode()))


Change = Callable[[dict[str, np.ndarray[Any, Any]]], dict[str, np.ndarray[Any, Any]]]


def put(name: str, at: int, value: int) -> Change:
    def change(arrays: dict[str, np.ndarray[Any, Any]]) -> dict[str, np.ndarray[Any, Any]]:
        values = arrays[name].astype(np.int32 if FILES[name] == "<i4" else arrays[name].dtype)
        values[at] = value
        return arrays | {name: values}

    return change


CHANGES: dict[str, Change] = {
    "no high": lambda arrays: {name: values for name, values in arrays.items() if name != "high"},
    "no ids": lambda arrays: {name: values for name, values in arrays.items() if name not in ("ids", "text")},
    "shorter high": lambda arrays: arrays | {"high": arrays["high"][:-1]},
    "longer lam": lambda arrays: arrays | {"lam": np.append(arrays["lam"], 1).astype(arrays["lam"].dtype)},
    "shorter first": lambda arrays: arrays | {"first": arrays["first"][:-1]},
    "no first": lambda arrays: arrays | {"first": arrays["first"][:0]},
    "long forest": lambda arrays: arrays | {"forest": np.arange(len(arrays["high"]), dtype=np.int32)},
    "forest out of range": put("forest", -1, 2**31 - 1),
    "forest twice": put("forest", 1, 0),
    "first falls": put("first", 1, 2**40),
    "first below 0": put("first", 0, -5),
    "high out of range": put("high", 3, 2**31 - 1),
    "high below 0": put("high", 3, -1),
    "a loop": put("high", 0, 0),
    "high descends": put("high", 1, 1),
    "lam below 0": put("lam", 0, -1),
    "lam too large": put("lam", 0, 2**31 - 1),
    "time below 0": put("time", 0, -(2**31)),
    "count below lam": put("count", 0, 0),
    "count too large": put("count", 0, 2**31 - 1),
    "remainder above lam": put("remainder", 0, 1000),
    "remainder below 0": put("remainder", 0, -1),
    "another lam": lambda arrays: arrays | {name: arrays[name] * 0 for name in ("lam", "remainder")},
    "ways of no edge": lambda arrays: arrays | {"ways": np.zeros(len(arrays["high"]), np.uint8)},
    "ways out of range": lambda arrays: arrays | {"ways": np.full(len(arrays["high"]), 7, np.uint8)},
    "few weights": lambda arrays: arrays | {"weight": np.ones(2)},
    "high of floats": lambda arrays: arrays | {"high": arrays["high"].astype("<f4")},
    "high of objects": lambda arrays: arrays | {"high": arrays["high"].astype("<i8")},
    "a stray file": lambda arrays: arrays | {"stray": arrays["high"]},
}
OF_INTEGERS: dict[str, Change] = {
    "ids descend": lambda arrays: arrays | {"ids": arrays["ids"][::-1]},
    "ids twice": put("ids", 1, 0),
    "text for integers": lambda arrays: (
        {name: values for name, values in arrays.items() if name != "ids"}
        | {"starts": np.arange(len(arrays["ids"]) + 1), "text": np.arange(97, 97 + len(arrays["ids"]), dtype=np.uint8)}
    ),
}
OF_TEXT: dict[str, Change] = {
    "starts fall": put("starts", 1, 2**40),
    "starts below 0": put("starts", 0, -1),
    "text is no UTF-8": lambda arrays: arrays | {"text": arrays["text"] | 0x80},
    "text descends": lambda arrays: arrays | {"text": arrays["text"][::-1]},
    "shorter text": lambda arrays: arrays | {"text": arrays["text"][:-1]},
}


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        *((INTEGERS, name) for name in (*CHANGES, *OF_INTEGERS)),
        *((TEXT, name) for name in ("shorter high", "high out of range", *OF_TEXT)),
    ],
)
def test_a_state_that_is_not_of_a_graph(bases: dict[str, Result], tmp_path: Path, kind: str, name: str) -> None:
    state, change = tmp_path / "state", (CHANGES | OF_INTEGERS | OF_TEXT)[name]
    shutil.copytree(bases[kind].path / "state", state)
    reseal(state, arrays_of(state))
    assert read_state(Folder(str(state)), bases[kind].manifest.run).graph.edges.edges == len(FIRST)
    reseal(state, change(arrays_of(state)))
    if name in ("another lam", "text for integers"):  # it is of another graph, which the result tells
        read_state(Folder(str(state)), bases[kind].manifest.run)
        return
    with pytest.raises(NoState, match=r"is not used|is damaged"):
        read_state(Folder(str(state)), bases[kind].manifest.run)


@pytest.mark.parametrize("name", ["shorter high", "another lam", "text for integers", "high out of range"])
def test_a_night_after_a_forged_state(bases: dict[str, Result], tmp_path: Path, name: str) -> None:
    """It computes everything, says why, and keeps a state that the next night can use."""
    base = tmp_path / "base"
    shutil.copytree(bases[INTEGERS].path, base)
    reseal(base / "state", (CHANGES | OF_INTEGERS)[name](arrays_of(base / "state")))
    rows = bases[INTEGERS].path.with_name(f"{INTEGERS}-second.parquet")
    made = mine(rows, tmp_path / "out", previous=str(base), device="cpu", report=False)
    assert made.manifest.update is not None
    assert (made.manifest.update.way, made.manifest.update.base_run) == ("whole", bases[INTEGERS].manifest.run)
    assert "state" in made.manifest.update.reason
    assert runs.flaws(made.path, rows) == []
    after = mine(rows, tmp_path / "after", previous=str(made.path), device="cpu", report=False)
    assert after.manifest.update is not None and after.manifest.update.way == "changes"


@settings(max_examples=examples(300, least=25))
@given(data=st.data())
def test_any_change_of_a_state_is_refused_or_stays_in_range(
    bases: dict[str, Result], tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """Whatever is read may be used as indices by kernels."""
    kind = data.draw(st.sampled_from([INTEGERS, TEXT]))
    state = tmp_path_factory.mktemp("drawn") / "state"
    shutil.copytree(bases[kind].path / "state", state)
    arrays = arrays_of(state)
    name = data.draw(st.sampled_from(sorted(arrays)))
    wide = arrays[name].astype(np.int32 if FILES[name] == "<i4" else arrays[name].dtype)
    limits = np.iinfo(wide.dtype)
    for _ in range(data.draw(st.integers(1, 3))):
        if len(wide):
            wide[data.draw(st.integers(0, len(wide) - 1))] = data.draw(
                st.integers(int(limits.min), int(limits.max)) | st.integers(0, 30)
            )
    length = data.draw(st.just(len(wide)) | st.integers(0, 2 * len(wide)))
    reseal(state, arrays | {name: np.resize(wide, length)})
    try:
        found = read_state(Folder(str(state)), bases[kind].manifest.run)
    except NoState:
        return
    edges, order, vertices = found.graph.edges, found.order, len(found.graph.ids)
    low, high = edges.low, edges.high
    assert len(low) == len(high) == len(order.lam) == len(order.time) == len(order.count) == len(order.remainder)
    assert (low >= 0).all() and (low < high).all() and (high < vertices).all()
    assert (np.diff(low.astype(np.int64) * vertices + high) > 0).all()
    assert (found.forest >= 0).all() and (found.forest < len(low)).all()
    assert (order.remainder >= 0).all() and (order.remainder <= order.lam).all() and (order.lam <= order.count).all()
    assert (order.count < max(vertices, 1)).all() and (order.time >= 0).all()
