"""`warm`, and for vertex programs `compile_programs`, compile all kernels that a run calls: no stage compiles one."""

from __future__ import annotations

import json
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import numba
import pytest

from edgemill.kernels.runtime import cache
from edgemill.kernels.runtime import warm as warm_kernels
from edgemill.kernels.runtime.side_by_side import Parts
from edgemill.kernels.runtime.warm import SECONDS, warm
from support_path import SUPPORT_PATH

SCRIPT = """
import json, os, sys
sys.path[:0] = sys.argv[1].split(os.pathsep)
import bounding, drive
import numpy as np
from backends import kernel_types
from edgemill.kernels.graph import Topology
from edgemill.kernels.runtime.warm import warm
from edgemill.pipeline.run.compiling import compile_programs
from edgemill.pipeline.programs.making import shipped_programs
from edgemill.tasks.generate import generate
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.partition import RangePartitioner
from edgemill.tasks.programs import Entries, GraphProgram, cut_blocks, run_blocks
from edgemill.tasks.programs.orders.calls import takes_weights
from edgemill.tasks.shards import MemoryCarrier
from edgemill.tasks.update.order import order_of
from edgemill.tasks.update.updating import update_order
from edgemill.tasks.update.warm import warm_orders, warm_updates
from edgemill.tasks.update.whole import order_from_nothing
from oracles import brute_force_lambda

def mine(method, workers):
    warm(method, 1, bands=workers > 1)
    before = kernel_types()
    generate("rmat", "rows", files=2, seed=1, scale=9, edge_factor=8)
    ingested = drive.ingest(open_source("rows"), buckets=3, rows_per_block=1000)
    methods = {"peel": bounding.peeling, "band": bounding.band, "fixpoint": bounding.fixpoint}
    more = {"workers": workers} if workers > 1 else {}
    assert methods[method](drive.subgraph(ingested.owned), **more).low.sum() > 0
    return before

def programs(directed, blocks):
    compile_programs()
    before = kernel_types()
    ends, random = np.random.default_rng(1).integers(0, 900, (2, 2500)).astype(np.int32), np.random.default_rng(2)
    home = RangePartitioner(np.array([300])) if blocks == 2 else RangePartitioner()
    for program in shipped_programs():
        if isinstance(program, GraphProgram) and blocks == 2:
            continue
        weight = random.random(2500) if takes_weights(program, False) else None
        made = cut_blocks(Entries(*ends, weight), 900, home, directed, program.view)
        run_blocks(program, made, home, MemoryCarrier.open(blocks), threads=2)
    return before

def update(in_one_thread):
    warm_updates()
    warm_orders()
    before, random = kernel_types(), np.random.default_rng(3)
    low, high = (end.astype(np.int32) for end in np.triu_indices(40, 1))
    there = random.random(len(low)) < 0.5
    edges, added = (Topology(low[own], high[own], 40) for own in (there, ~there & (random.random(len(low)) < 0.1)))
    lam = brute_force_lambda(zip(edges.low.tolist(), edges.high.tolist()))
    order = order_of(edges, np.array([lam[edge] for edge in sorted(lam)], np.int32))
    made = update_order(edges, order, random.random(edges.edges) < 0.1, added, in_one_thread=in_one_thread)
    assert made.changed.any()
    return before

def record(workers):
    warm("peel", workers, records=True)
    before = kernel_types()
    low, high = (end.astype(np.int32) for end in np.triu_indices(9, 1))
    assert order_from_nothing(Topology(low, high, 9))[1].lam.tolist() == [7] * 36
    return before

def look(name, run, *arguments):
    if (child := os.fork()) == 0:
        os.mkdir(name)
        os.chdir(name)
        before = run(*arguments)
        new = {kernel: str(types) for kernel, types in kernel_types().items() if types != before[kernel]}
        assert "Literal" not in str(kernel_types())  # one kernel for all constants
        print(json.dumps([name, new]), flush=True)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name

for name in sys.argv[2:]:
    method, _, count = name.rpartition(" ")
    if method == "update":
        look(name, update, count == "1")
    elif method == "record":
        look(name, record, int(count))
    elif method in ("undirected", "directed"):
        look(name, programs, method == "directed", int(count))
    else:
        look(name, mine, method, int(count))
"""
SOME = ["band 2", "directed 2", "record 1", "update 1", "update 2"]
CASES = [*SOME, "peel 1", "band 1", "fixpoint 1", "fixpoint 2", "undirected 1"]
"""Methods and workers, graphs for programs and their blocks, and whether an update runs in one thread."""


@pytest.mark.parametrize("names", [SOME, pytest.param(CASES, marks=pytest.mark.slow)], ids=["some", "all"])
def test_a_run_compiles_no_further_kernel(tmp_path: Path, names: list[str]) -> None:
    """Each case has a process of its own, which knows no kernel before it."""
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, SUPPORT_PATH, *names],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    cases = dict(map(json.loads, found.stdout.splitlines()))
    assert len(cases) == len(names)
    assert {name: new for name, new in cases.items() if new} == {}


def test_another_process_compiles_a_part() -> None:
    """It tells how many kernels it has compiled; here they are in the cache."""
    warm("peel", 1)
    found = subprocess.run(
        [sys.executable, "-m", warm_kernels.__spec__.name, "rows"], stdout=subprocess.PIPE, text=True, check=True
    )
    assert found.stdout == "0\n"


def test_parts_are_shared_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shares take about equally long, and all parts run here in the end, to load what others compiled. Parts that are
    in the cache are left out.
    """
    called, commands, marked = list[str](), list[list[str]](), {"rows", "scan"}

    class Process:
        def __init__(self, command: list[str], **_: Any) -> None:
            commands.append(command[3:])

        def communicate(self) -> tuple[str, None]:
            return "7\n", None

    parts = {name: partial(called.append, name) for name in SECONDS}
    monkeypatch.setattr(warm_kernels, "_KERNELS", Parts("", parts, SECONDS))
    monkeypatch.setattr(subprocess, "Popen", Process)
    monkeypatch.setattr(cache, "is_kept", lambda: True)
    monkeypatch.setattr(cache, "is_marked", marked.__contains__)
    monkeypatch.setattr(cache, "mark", marked.add)
    assert warm("peel", 1, text=True, processes=3, many=False).compiled == 14
    peel = ["peel", "lower", "live", "scan", "adjacency", "compact"]
    always = ["join", "forest", "components", "pairs", "rows", "triangles", "members", "digits"]
    everything = [*peel, *always, "text", "hashes"]
    assert called[-len(everything) :] == everything
    shares = [called[: -len(everything)], *commands]
    assert sorted(part for share in shares for part in share) == sorted({*everything} - {"rows", "scan"})
    seconds = [sum(SECONDS[part] for part in share) for share in shares]
    assert max(seconds) == seconds[0] < min(seconds) + max(SECONDS[part] for part in everything)
    called.clear()
    assert warm("peel", 1, text=True, processes=3, many=False).compiled == 0
    assert called == []  # this process has loaded all of them
    monkeypatch.setattr(warm_kernels, "_KERNELS", Parts("", parts, SECONDS))  # as in another one
    assert warm("peel", 1, text=True, processes=3, many=False).compiled == 0
    assert called == everything and len(commands) == 2


def test_marks_of_compiled_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, environment = tmp_path / "own", tmp_path / "environment"
    monkeypatch.setattr(cache, "folder", lambda: own)
    monkeypatch.setattr(cache, "environment_folder", lambda: environment)
    monkeypatch.setattr(cache, "_portable", lambda: None)
    cache.mark("rows")
    assert not cache.is_kept() and not cache.is_marked("rows")  # nothing can be kept there
    monkeypatch.setattr(cache, "_written", {own})
    own.mkdir()
    cache.mark("rows")
    assert cache.is_kept() and cache.is_marked("rows") and not cache.is_marked("peel")
    own.rename(environment)  # as in an image
    assert cache.is_marked("rows")
    with monkeypatch.context() as other:
        other.setattr(numba.config, "CPU_NAME", "another")
        assert not cache.is_marked("rows")
    with monkeypatch.context() as ahead:
        ahead.setattr(cache, "_portable", lambda: "all")
        (environment / "scan-all.compiled").touch()
        assert cache.is_marked("scan")
    assert not cache.is_marked("scan")
    cache.mark("rows")
    assert not own.exists()


HOLDING = """
import sys
from pathlib import Path
from edgemill.kernels.runtime import cache

own = Path(sys.argv[1])
cache.folder = lambda: own
cache._written.add(own)
with cache.compiling("rows"):
    print("compiles", flush=True)
    sys.stdin.readline()
"""


@pytest.mark.parametrize("killed", [False, True])
def test_one_process_compiles_a_part(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, killed: bool) -> None:
    """Others call the other parts first, then wait for it. If that process is killed, the next one compiles."""
    monkeypatch.setattr(cache, "folder", lambda: tmp_path)
    monkeypatch.setattr(cache, "environment_folder", lambda: tmp_path / "none")
    monkeypatch.setattr(cache, "_written", {tmp_path})
    called = list[tuple[str, bool]]()
    command = [sys.executable, "-c", HOLDING, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "compiles\n"

        def call(name: str) -> None:
            called.append((name, cache.is_marked("rows")))
            if name == "scan":
                if killed:
                    other.kill()
                else:
                    other.communicate("go on\n")

        parts = {name: partial(call, name) for name in ("rows", "peel", "scan")}
        Parts("", parts, SECONDS).load(["rows", "peel", "scan"])
    assert called == [("peel", False), ("scan", False), ("rows", not killed)]
    assert all(map(cache.is_marked, parts))
