"""What a plan says of vertex programs: blocks, memory, order, tasks, and the cost of streaming edges past a GPU."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import OutOfRoom, mine
from edgemill.pipeline.cli.documents import plan_document
from edgemill.pipeline.cluster.engine import Engine
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.events import Events, Stage
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.output.manifest import Counts
from edgemill.pipeline.plan.choice import make_plan, plan_run, plan_without_sample
from edgemill.pipeline.plan.fit import describe, refuse_if_too_large
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.plan.programs import PlannedPrograms
from edgemill.pipeline.plan.seconds import PROGRAM_SECONDS
from edgemill.pipeline.run.tables import plan_record
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.generate import generate
from edgemill.tasks.programs.shipped.components import Components
from edgemill.tasks.programs.streaming import LINK_RATE, StreamCost

GIB = 2**30
H200 = Capacity(1, 16, 128 * GIB, 139 * GIB, True)
RMAT26 = {"rows": 1_052_000_000, "edges": 1_052_000_000, "vertices": 2**26}


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", folder, files=2, seed=5, scale=9, edge_factor=8)
    return folder


def of(
    names: str,
    capacity: Capacity = H200,
    directed: bool = False,
    sizes: dict[str, int] = RMAT26,
    pagerank: dict[str, Any] | None = None,
    **more: Any,
) -> PlannedPrograms:
    sections: dict[str, Any] = {"bfs": {"source": 1}, "sssp": {"source": 1}, "pagerank": pagerank or {}}
    sections["input"] = {"weight_column": "w"} if "sssp" in names else {}
    settings = make_settings("in", "out", programs={"run": names.split(","), **more}, **sections)
    return PlannedPrograms.of(settings, directed, sizes["rows"], sizes["edges"], sizes["vertices"], capacity)


def test_a_program_that_needs_all_edges_has_one_block() -> None:
    workers = Capacity(workers=4, threads=2, memory_bytes=2**36)
    plan = of("components,leiden,coreness", capacity=workers)
    assert plan.blocks == 4 and plan.cuts == [4, 1, 4]
    entries = {own.name: plan.entries(own) for own in plan.programs}
    assert entries["leiden"] == 2 * RMAT26["edges"] and entries["components"] == -(-entries["leiden"] // 4)
    others = of("components,coreness", capacity=workers)
    assert plan.bytes > 3 * others.bytes
    assert plan.bytes_in_files > 3 * others.bytes and others.bytes_in_files < others.bytes
    assert (plan.in_one_block, others.in_one_block) == ("leiden", "")


def test_entries_of_a_block_by_view() -> None:
    plan = of("pagerank,components,labels,clustering", directed=True, sizes={"rows": 15, "edges": 10, "vertices": 9})
    assert [(own.name, plan.entries(own)) for own in plan.programs] == [
        ("pagerank", 15),
        ("components", 30),
        ("labels", 30),
        ("clustering", 20),
    ]
    assert plan.cuts == [1, 1, 1]  # labels take the block of components
    assert replace(plan, directed=False).cuts == [1]
    undirected = of("pagerank,components,clustering")
    assert {undirected.entries(own) for own in undirected.programs} == {2 * RMAT26["edges"]}


def test_blocks_and_memory() -> None:
    """The measured bytes of an entry while blocks are built: 7 to 11 in one block, 41 if directed, 28 in two."""
    one, two = of("pagerank"), of("pagerank", Capacity(2, 8, 64 * GIB))
    assert (one.blocks, two.blocks) == (1, 2)
    entries = 2 * RMAT26["edges"]
    assert 11 <= (one.building_bytes - 8 * 2**26) / entries <= 13
    assert 28 <= (two.building_bytes - 8 * 2**25) / (entries / 2) <= 29
    assert one.bytes == one.building_bytes > one.running_bytes > 4 * entries
    assert of("bfs", Capacity(2, 8, 64 * GIB)).running_bytes - two.running_bytes == 4 * entries // 2  # rows by source
    assert of("sssp").building_bytes - one.building_bytes == 12 * entries
    directed = of("pagerank", directed=True)
    assert 41 <= (directed.building_bytes - 8 * 2**26) / directed.entries(directed.programs[0]) <= 43
    assert of("betweenness").running_bytes - one.running_bytes == 8 * 64 * 2**26
    assert of("hits").running_bytes == one.running_bytes and of("hits").cost(of("hits").programs[0]) is None
    forwards, by_turns = of("pagerank", directed=True), of("hits", directed=True)
    assert by_turns.running_bytes - forwards.running_bytes == 4 * forwards.entries(forwards.programs[0])
    few = of("pagerank", Capacity(9, 1, GIB), sizes={"rows": 10**6, "edges": 10**6, "vertices": 10**5})
    assert few.blocks == 1


@pytest.mark.parametrize(
    ("order", "workers", "orders"),
    [
        ("auto", 1, ["synchronous"] * 3),
        ("auto", 2, ["synchronous", "auto", "auto"]),
        ("synchronous", 2, ["synchronous"] * 3),
        ("asynchronous", 2, ["synchronous", "asynchronous", "asynchronous"]),
    ],
)
def test_the_order_of_supersteps(order: str, workers: int, orders: list[str]) -> None:
    plan = of("pagerank,components,bfs", Capacity(workers, 1, 64 * GIB), order=order)
    assert [plan.order_of(own) for own in plan.programs] == orders


def test_the_cost_of_streaming() -> None:
    """R-MAT 26 with 4 GiB for edges: the rest of 8.4 GB crosses the link in each superstep."""
    plan = of("pagerank,betweenness,clustering", device_topology_bytes=4 * GIB)
    ranks, *others = plan.programs
    assert [plan.cost(own) for own in others] == [None, None]
    cost = plan.cost(ranks)
    assert cost is not None
    whole = 8 * RMAT26["edges"]
    assert cost.streamed
    assert cost.kept == 4 * GIB - 3 * 64 * 2**20
    assert cost.copied == whole - 4 * GIB
    assert cost.step_seconds == pytest.approx(cost.copied / LINK_RATE, rel=0.12)
    assert cost.step_seconds > cost.copied / LINK_RATE
    assert ranks.supersteps == 128  # 0.85^128 is below the tolerance
    seconds = plan.seconds(ranks)
    assert seconds is not None
    assert seconds == pytest.approx(128 * cost.step_seconds + 0.3 * whole / GIB, rel=0.02)

    resident = of("pagerank").cost(ranks)
    assert resident is not None
    assert (resident.streamed, resident.copied, resident.pinning_seconds) == (False, 0, 0)
    assert resident.kept == whole
    assert resident.step_seconds == pytest.approx(0.0289, rel=0.2)  # measured, benchmarks/history.csv
    assert of("pagerank", Capacity(1, 16, 128 * GIB)).cost(ranks) is None


def test_measured_supersteps_that_are_resident() -> None:
    """The model against PageRank of benchmarks/history.csv, within a fifth."""
    for scale, entries, measured in ((22, 128e6, 1.65e-3), (24, 521e6, 6.53e-3), (26, 2104e6, 28.9e-3)):
        cost = StreamCost(int(entries), 2**scale, 4, 2**40)
        assert cost.step_seconds == pytest.approx(measured, rel=0.2)


def test_long_rows_take_large_buffers() -> None:
    short, long = (StreamCost(10**9, 10**6, 4, GIB, longest) for longest in (0, 5 * 10**7))
    assert short.kept - long.kept == 3 * (4 * 5 * 10**7 - 64 * 2**20)
    assert short.copied == long.copied  # the buffers' chunks are read again without a copy


def planned(rows: Path, capacity: Capacity, **more: Any) -> Plan:
    settings = make_settings(str(rows), "out", programs={"run": ["pagerank", "components"], **more})
    return plan_run(settings, open_input(settings), capacity)


def test_lines_and_document(rows: Path) -> None:
    plan = planned(rows, Capacity(1, 2, 8 * GIB, 16 * GIB, True), device_topology_bytes=0)
    text = describe(plan)
    assert "programs     pagerank (synchronous), components (synchronous); 1 block of ~" in text
    assert "while blocks are built, ~" in text
    assert "on GPUs      pagerank: ~" in text
    assert " stay and ~" in text
    assert " s for 128" in text
    document = plan_document(plan)["programs"]
    assert document["blocks"] == 1
    first, second = document["programs"]
    assert (first["name"], first["supersteps"], first["edges_on_gpu_bytes"]) == ("pagerank", 128, 0)
    assert first["seconds"] > 0
    assert (second["name"], second["supersteps"], second["seconds"]) == ("components", None, None)
    assert plan_record(plan).programs == {"pagerank": first["seconds"]}
    on_cpus = plan_document(planned(rows, Capacity(1, 2, 8 * GIB)))["programs"]["programs"][0]
    assert on_cpus["edges_on_gpu_bytes"] is None and on_cpus["seconds"] > 0
    assert "programs  " not in describe(replace(plan, programs=None))


def test_seconds_on_cpus() -> None:
    """They grow with supersteps, entries and fewer threads, by known factors, beside the start of a task."""
    two, sixteen = (Capacity(1, threads, 64 * GIB) for threads in (2, 16))
    sizes = {"rows": 10**9, "edges": 10**9, "vertices": 10**7}
    some = "pagerank,components,bfs,sssp,strong_components,coreness,clustering,labels,betweenness"
    found = of(some, two, sizes=sizes).all_seconds
    assert set(found) == {"pagerank", "components", "bfs", "sssp", "strong_components"}

    def steps(count: int, capacity: Capacity = two, **more: Any) -> float:
        return of("pagerank", capacity, sizes=sizes, pagerank={"iterations": count}, **more).all_seconds["pagerank"]

    fixed = PROGRAM_SECONDS + 1.0  # the start, and the result
    ten, twenty = steps(10), steps(20)
    each = (twenty - ten) / 10
    assert ten - 10 * each == pytest.approx(fixed, rel=1e-3)
    assert found["pagerank"] == pytest.approx(ten + 70 * each, rel=1e-3)  # 0.62 of at most 128
    assert steps(10, sixteen) - fixed == pytest.approx((ten - fixed) * 8**-0.6, rel=1e-3)
    of_components = [of("components", capacity, sizes=sizes).all_seconds for capacity in (two, Capacity(4, 4, GIB))]
    assert of_components[0] and not of_components[1]  # exchanges between blocks are not predicted
    weighted = of("sssp,pagerank", two, sizes=sizes, pagerank={"weighted": True})
    assert set(weighted.all_seconds) == {"sssp"}
    text = [text for _, text in of("pagerank,bfs", two, sizes=sizes).describe(False)]
    assert any("s for ~80 supersteps, bfs ~" in line for line in text)


def test_a_run_without_a_sample_predicts_from_its_counts(rows: Path) -> None:
    settings = make_settings(str(rows), "out", programs={"run": ["components"]})
    plan = plan_without_sample(settings, open_input(settings), Capacity(1, 2, 8 * GIB))
    assert plan is not None and not plan.graph.rows_looked_at
    assert plan_record(plan).programs == {}
    counts = Counts(
        rows=10**9, self_loops=0, duplicates=0, nulls_dropped=0, edges=10**9, vertices=10**7, triangles=None
    )
    assert plan_record(plan, counts).programs == {
        "components": pytest.approx(PROGRAM_SECONDS + 1 + 2e9 * Components.cost.entry, rel=1e-3)
    }


def test_memory_of_programs_counts(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plan = planned(rows, Capacity(1, 1, GIB, 0, True))
    assert plan.worker_bytes >= plan.programs_bytes > 0
    assert replace(plan, programs=None).programs_bytes == 0
    monkeypatch.setattr(PlannedPrograms, "building_bytes", property(lambda _: 2 * GIB))
    with pytest.raises(OutOfRoom, match=r"block of programs, .*one of 1, .*1\.00 GiB: start more"):
        refuse_if_too_large(plan)


def test_blocks_in_files(monkeypatch: pytest.MonkeyPatch, rows: Path) -> None:
    """Where they do not fit worker processes; then only vertices and some entries must be in memory."""
    plan = planned(rows, Capacity(2, 1, GIB))
    assert plan.programs is not None
    assert [plan.programs_in_files for _ in "1"] == [False]
    monkeypatch.setattr(PlannedPrograms, "building_bytes", property(lambda _: GIB))
    assert [plan.programs_in_files for _ in "1"] == [True]
    assert plan.programs.bytes_in_files < plan.programs_bytes < 0.3 * GIB
    refuse_if_too_large(plan)
    assert "; entries in files, ~" in describe(plan)
    assert not replace(plan, capacity=Capacity(2, 1, 4 * GIB)).programs_in_files
    assert not replace(plan, capacity=Capacity(1, 1, GIB, 0, True)).programs_in_files


def test_tasks_of_programs(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tasks, within = 0, False
    start, stage = Engine._start, Events.stage

    def started(engine: Engine, name: str, function: Any, arguments: Any, *given: Any, **how: Any) -> Any:
        nonlocal tasks
        tasks += len(arguments) if within else 0
        return start(engine, name, function, arguments, *given, **how)

    @contextmanager
    def entered(events: Events, name: str, count: int) -> Iterator[Stage]:
        nonlocal within
        within = name == "programs"
        with stage(events, name, count) as opened:
            yield opened
        within = False

    monkeypatch.setattr(Engine, "_start", started)
    monkeypatch.setattr(Events, "stage", entered)
    how: dict[str, Any] = {"device": "cpu", "programs": {"run": ["lambda", "pagerank", "components"]}}
    mine(rows, tmp_path / "out", **how)
    plan = make_plan(make_settings(str(rows), str(tmp_path / "out"), **how))
    assert tasks == plan.tasks - replace(plan, programs=None).tasks
