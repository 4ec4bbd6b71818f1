"""Which kernels the workers of a run compile or load, and when."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edgemill.kernels.runtime.side_by_side import WarmUp
from edgemill.kernels.runtime.warm import load_parts, parts_for
from edgemill.pipeline.events import Events
from edgemill.pipeline.run import full
from edgemill.pipeline.stages.kernels import KernelLoading, Needed, is_prepared, prepare, run_cliques
from edgemill.tasks.warm import load_coding


class Workers:
    """Records the tasks that two workers get. One of them has compiled nothing if `compiled` is false."""

    def __init__(self, compiled: bool) -> None:
        self.capacity = SimpleNamespace(threads=4)
        self.compiled = compiled
        self.called: list[Any] = []

    def on_every_worker(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        self.called.append(function)
        return [True, self.compiled]

    def leave_to_workers(self, name: str, function: Callable[..., Any], needed: Needed) -> None:
        assert needed.method == "peel"  # otherwise the task fails, and nothing tells
        self.called.append(function)


@pytest.mark.parametrize("on_device", [True, False])
@pytest.mark.parametrize("finds_lambda", [True, False])
@pytest.mark.parametrize("partitions", [1, 2])
def test_compiled_kernels_are_loaded_as_the_run_needs_them(
    finds_lambda: bool, partitions: int, on_device: bool
) -> None:
    plan: Any = SimpleNamespace(
        finds_lambda=finds_lambda,
        method="peel",
        partitions=partitions,
        is_whole=partitions == 1,
        compact_rows=False,
        ingest_on_device=on_device,
        source=SimpleNamespace(kind="integer"),
        in_bands=False,
    )
    first: Any = Workers(compiled=False)
    full._warm_gpus(first, plan)
    assert first.called == [is_prepared, prepare]
    later: Any = Workers(compiled=True)
    assert full._warm_gpus(later, plan) == []
    for_reading = load_coding if on_device else load_parts
    assert later.called == [is_prepared, for_reading, *[run_cliques] * (finds_lambda and partitions == 1)]


class Background:
    """An engine whose background tasks end when they are gathered."""

    capacity = SimpleNamespace(threads=16)

    def __init__(self, done: bool) -> None:
        self.task = SimpleNamespace(done=lambda: done)
        self.started: list[tuple[Sequence[str], int, bool]] = []
        self.loaded: list[str] = []

    def in_background(self) -> Background:
        return self

    def map(self, name: str, function: Callable[..., Any], arguments: list[Any]) -> list[Any]:
        assert (name, function) == ("load", load_parts)
        self.started += arguments
        return [self.task for _ in arguments]

    def on_every_worker(self, function: Callable[..., Any], parts: Sequence[str], processes: int) -> list[WarmUp]:
        assert function is load_parts
        self.loaded += parts
        return [WarmUp(1, 0.0)]

    def gather(self, futures: list[Any]) -> list[WarmUp]:
        return [WarmUp(10, 0.0) for _ in futures]


@pytest.mark.parametrize("text", [False, True])
@pytest.mark.parametrize("done", [False, True])
def test_stages_wait_for_their_kernels(text: bool, done: bool) -> None:
    emitted: list[dict[str, Any]] = []
    events = Events(SimpleNamespace(show=emitted.append, close=lambda: None))
    engine: Any = Background(done)
    parts, loading = parts_for("peel", 1, text), KernelLoading()
    loading.start(engine, parts)
    assert sorted(parts) == sorted(engine.loaded + [part for own, _, _ in engine.started for part in own])
    assert [processes for _, processes, _ in engine.started] == [5, 11]
    assert not any(here for _, _, here in engine.started)  # this process reads rows meanwhile
    pending = []
    for stage in ("number", "triangulate"):
        loading.finish(engine, events, stage)
        pending.append(loading.is_pending)
    assert pending == [True, False]
    assert [event["compiled"] for event in emitted if event["event"] == "kernels"] == [21]
    assert emitted[-1]["event"] == "kernels"
    assert [stage.stage for stage in events.stages] == ([] if done else ["compile"] * 2)
    before = len(emitted)
    loading.finish(engine, events, "triangulate")
    assert len(emitted) == before


SCRIPT = """
import json, sys
from pathlib import Path
from edgemill import mine
from edgemill.tasks.generate import generate

if not Path("rows").exists():
    generate("rmat", "rows", files=2, seed=1, scale=15, edge_factor=8)
for number in range(2):
    out = Path(f"result-{number}")
    mine("rows", out, device="cpu", threads_per_worker=4, partitions=1)
    lines = map(json.loads, (out / "log.jsonl").read_text().splitlines())
    print(json.dumps([line["compiled"] for line in lines if line["event"] == "kernels"]))
"""


@pytest.mark.slow
def test_kernels_are_compiled_while_rows_are_read(tmp_path: Path) -> None:
    """By other processes, in a cache that has none yet; the next run loads all of them."""
    environment = os.environ | {"EDGEMILL_CACHE_DIR": str(tmp_path / "cache")}
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True, check=True
    )
    first, second = map(json.loads, found.stdout.splitlines())
    assert len(first) == 1 and first[0] > 30 and second == [0]
