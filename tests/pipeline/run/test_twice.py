"""Every task of a run, run twice: the same result, and arguments that are what they were. Dask does tasks again."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest

from edgemill import kernels
from edgemill.kernels.runtime.sizes import SizedArrays
from edgemill.kernels.runtime.threads import kernel_threads
from edgemill.pipeline import Result
from edgemill.pipeline.cluster import engine
from edgemill.tasks.generate import generate
from edgemill.tasks.messages import bundle

Mine = Callable[..., Result]

SCHEDULES: list[dict[str, Any]] = [
    {"partitions": 1},
    {"partitions": 3, "checkpoint": {"every_seconds": 0.0}},
    {"partitions": 3, "max_seconds": 1e-9},
    {"method": "band", "checkpoint": {"every_exchanges": 2}},
    {"method": "fixpoint", "checkpoint": {"every_exchanges": 1}},
    {"method": "band", "max_exchanges": 2},
]
TASKS = {
    "add-partials",
    "answer-names",
    "answer-numbers",
    "answer-outlines",
    "answer-ranks",
    "answers",
    "band",
    "closed",
    "closing",
    "count-closed",
    "degrees",
    "dn-edges",
    "send-dn-edges",
    "fixpoint",
    "grow-tree",
    "halves",
    "ids",
    "ids-alone",
    "intervals",
    "kept-degrees",
    "kept-edges",
    "kept-ids",
    "kept-rows",
    "kept-subgraphs",
    "kept-supports",
    "counted",
    "states-kept",
    "names",
    "numbers",
    "outlines",
    "owned",
    "pairs",
    "partial",
    "peel",
    "peel-held",
    "peeled",
    "rank",
    "ranks",
    "read",
    "results",
    "rows-to-publish",
    "send-closed",
    "send-degrees",
    "send-edges",
    "send-halves",
    "send-ids",
    "send-outline",
    "send-owned",
    "send-results",
    "send-shapes",
    "send-sums",
    "shapes",
    "shard-edges",
    "sort-edges",
    "store-degrees",
    "store-edges",
    "store-ids",
    "store-rows",
    "store-states",
    "store-subgraphs",
    "store-supports",
    "stream",
    "subgraph",
    "summarise",
    "sums",
    "take-over",
    "track-numbers",
    "triangles",
    "without-ids",
    "write-edges",
    "write-groups",
    "write-vertices",
}
"""All kinds of tasks."""


def leaves(value: Any) -> Iterator[bytes]:
    """What a value is made of, whatever memory it shares."""
    yield type(value).__qualname__.encode()
    if is_dataclass(value) and not isinstance(value, type):
        for field in fields(value):
            yield field.name.encode()
            yield from leaves(getattr(value, field.name))
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield from leaves(key)
            yield from leaves(inner)
    elif isinstance(value, tuple | list):
        for inner in value:
            yield from leaves(inner)
    elif isinstance(value, pa.Array):
        yield json.dumps([str(value.type), value.to_pylist()], default=str).encode()
    elif hasattr(value, "dtype"):
        array = kernels.to_host(value)
        yield f"{array.dtype} {array.shape}".encode()
        yield array.tobytes()
    elif isinstance(value, partial):
        yield from leaves((value.func, *value.args, value.keywords))
    elif callable(value):
        yield str(getattr(value, "__qualname__", type(value))).encode()
    else:
        assert not isinstance(value, SizedArrays)
        yield repr(value).encode()


def digest(value: Any) -> str:
    found = hashlib.sha256()
    for leaf in leaves(value):
        found.update(len(leaf).to_bytes(8))
        found.update(leaf)
    return found.hexdigest()


def test_a_digest_tells_values_apart() -> None:
    ones = np.ones(3, np.int32)
    values = [ones, ones.astype(np.int64), ones[:2], np.array([1, 1, 2], np.int32), [1, 1, 1], {0: ones}, {1: ones}]
    values += [bundle(0, {1: ones}), bundle(1, {1: ones}), pa.array([1, 1]), pa.array(["1", "1"]), digest, leaves]
    assert len({digest(value) for value in values}) == len(values)
    assert digest(ones) == digest(np.ones(6, np.int32)[::2]) == digest(np.broadcast_to(np.int32(1), (3,)))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=3, seed=4, scale=7, edge_factor=8)
    return folder


def named(rows: Path, folder: Path) -> Path:
    """The same graph, its ids strings."""
    table = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
    names = {name: pc.binary_join_element_wise("é", table[name].cast(pa.string()), "") for name in table.column_names}
    pq.write_table(pa.table(names), folder / "named.parquet")
    return folder / "named.parquet"


def test_every_task_twice(rows: Path, tmp_path: Path, mined: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.tasks.bound.iterations._now", lambda: 0.0)  # iterations tell how long they took
    start = engine.Engine._start
    seen: dict[str, int] = {}
    differ: list[str] = []

    def twice(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        if name != "fixpoint":
            return compared(name, function, *arguments)
        # Threads lower bounds in place, so those of one iteration depend on which thread comes first.
        with kernel_threads(1):
            return compared(name, function, *arguments)

    def compared(name: str, function: Callable[..., Any], *arguments: Any) -> Any:
        before = digest(arguments)
        first = function(*arguments)
        seen[name] = seen.get(name, 0) + 1
        known = digest(first)
        if digest(arguments) != before:
            differ.append(f"arguments of {name}")
        if digest(function(*arguments)) != known or digest(first) != known:
            differ.append(name)
        return first

    def map_twice(self: engine.Engine, name: str, function: Callable[..., Any], *given: Any, **how: Any) -> Any:
        return start(self, name, _Here(partial(twice, name, function)), *given, **how)

    monkeypatch.setattr(engine.Engine, "_start", map_twice)
    for how in SCHEDULES:
        mined(rows, **how, device="cpu")
    mined(named(rows, tmp_path), partitions=2, device="cpu")
    assert differ == []
    assert sorted(seen.keys() - TASKS) == []
    assert sorted(TASKS - seen.keys()) == []
    assert sum(seen.values()) > 300


class _Here:
    """A function of this process, which Dask is to take as it is."""

    kept: ClassVar[list[Callable[..., Any]]] = []

    def __init__(self, function: Callable[..., Any]) -> None:
        self.kept.append(function)
        self._place = len(self.kept) - 1

    def __call__(self, *arguments: Any) -> Any:
        return self.kept[self._place](*arguments)
