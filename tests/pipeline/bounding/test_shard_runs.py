"""Runs in shards: equal results with all carriers, limits, checkpoints, and refused settings."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from functools import partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from distributed import Client
from rich.console import Console

import runs
from edgemill.kernels.cpu.shards.packets import HEADER
from edgemill.pipeline import ClusterLost, InternalError, Result, UsageError, mine
from edgemill.pipeline.bounding.bounding import _Limits
from edgemill.pipeline.cli.show import print_result
from edgemill.pipeline.cluster import carriers as carrier_choice
from edgemill.pipeline.cluster import execution
from edgemill.pipeline.cluster.carriers import CarrierChoice, Communicator
from edgemill.pipeline.cluster.connecting.local import WORKER_BYTES
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.events import Events
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan import choice as planning
from edgemill.pipeline.plan.choice import plan_run
from edgemill.pipeline.plan.fit import remedy
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.report import run_sections
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages.limits import FILL
from edgemill.tasks.shards import GroupPacket, MemoryCarrier
from in_process import call
from known_graphs import SKIP_REASON, known_graph
from pages import read_page
from sharding import Wrapped

Mine = Callable[..., Result]
CARRIERS = ["shared-memory", "dask"]
QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}


@pytest.fixture(scope="module")
def processes() -> Iterator[Client]:
    """Three worker processes with one thread each."""
    with runs.cluster(n_workers=3, threads_per_worker=1) as client:
        yield client


def tables(result: Result) -> list[Any]:
    found = (result.edges, result.vertices, result.hierarchy, result.dn_graphs, result.dn_graph_members)
    return [table.to_table() for table in found]


def assert_clean(client: Client, result: Result) -> None:
    runs.assert_nothing_left(client)
    assert not [name for name in os.listdir(carrier_choice.SHARED_MEMORY) if result.manifest.run in name]
    handlers = client.run(lambda dask_worker: [name for name in dask_worker.handlers if "carrier" in name])
    assert not any(handlers.values())


def in_groups(monkeypatch: pytest.MonkeyPatch, groups: int, shards: int) -> None:
    """Have every run plan this number of groups, for any number of workers."""
    on_cpus = planning._plan_on_cpus

    def plan(one: Plan, asked: int | str) -> Plan:
        return replace(on_cpus(one, asked), partitions=groups, shards=shards)

    monkeypatch.setattr(planning, "_plan_on_cpus", plan)


@pytest.mark.parametrize(
    ("carrier", "groups", "method"),
    [
        ("shared-memory", 3, "auto"),
        ("dask", 2, "peel"),
        pytest.param("auto", 2, "peel", marks=pytest.mark.slow),
        pytest.param("dask", 3, "auto", marks=pytest.mark.slow),
    ],
)
def test_as_in_one_process(
    rows: Path, plain: Result, processes: Client, tmp_path: Path, carrier: str, groups: int, method: str
) -> None:
    bounding = {"carrier": carrier, "method": method}
    result = mine(rows, tmp_path / "out", client=processes, partitions=groups, bounding=bounding, **QUIET)
    assert tables(result) == tables(plain)
    manifest = result.manifest
    shards = manifest.bounding.shards
    assert shards is not None
    assert (shards.shards, shards.groups, len(manifest.partitions)) == (groups, groups, groups)
    assert (shards.carrier, shards.relayed) == ("dask" if carrier == "dask" else "shared-memory", "")
    assert manifest.bounding.steps == plain.manifest.bounding.steps
    (exchange,) = manifest.exchanges
    assert exchange.bytes == shards.bytes > 0
    assert exchange.messages == shards.alarms + shards.reports + shards.grants > 0
    in_triangles = sum(1 for support in runs.column(result, "support").values() if support)
    assert sum(part.owned for part in manifest.partitions) == in_triangles
    assert_clean(processes, result)


def test_why_threads_carried_between_gpus(rows: Path, processes: Client, tmp_path: Path) -> None:
    """The report shows the reason."""
    manifest = mine(rows, tmp_path / "out", client=processes, partitions=2, **QUIET).manifest
    shards = manifest.bounding.shards
    assert shards is not None
    relayed = shards.model_copy(update={"relayed": "there is no room"})
    bounding = manifest.bounding.model_copy(update={"shards": relayed})
    why = "Threads relayed messages between GPUs, because there is no room."
    assert why not in run_sections.bounding(manifest).text
    assert why in run_sections.bounding(manifest.model_copy(update={"how_bounded": bounding})).text


@pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "carrier"),
    [("oregon1_010331", "shared-memory"), pytest.param("ca-GrQc", "dask", marks=pytest.mark.slow)],
)
def test_known_graphs(processes: Client, tmp_path: Path, name: str, carrier: str) -> None:
    graph = known_graph(name)
    how: dict[str, Any] = {"client": processes, "partitions": 3, "bounding.carrier": carrier}
    result = mine(graph.path, tmp_path / "out", **how, **QUIET)
    edges = result.edges.to_table()
    for column, expected in zip(("src", "dst", "lambda"), graph.lambda_table(), strict=True):
        np.testing.assert_array_equal(edges[column].to_numpy(), expected)


@pytest.mark.parametrize(
    ("where", "groups"),
    [
        ("memory", 5),
        ("shared-memory", 5),
        pytest.param("memory", 2, marks=pytest.mark.slow),
        pytest.param("dask", 5, marks=pytest.mark.slow),
        *(pytest.param(carrier, 2, marks=pytest.mark.slow) for carrier in CARRIERS),
    ],
)
def test_several_groups_on_a_worker(
    rows: Path,
    plain: Result,
    two_workers: Client,
    mined: Mine,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    groups: int,
) -> None:
    """As when a worker is lost and not replaced."""
    in_groups(monkeypatch, groups, groups + 2)
    if where == "memory":
        result = mined(rows, partitions=2, device="cpu")
    else:
        how: dict[str, Any] = {"client": two_workers, "partitions": 2, "bounding.carrier": where}
        result = mine(rows, tmp_path / "out", **how, **QUIET)
    shards = result.manifest.bounding.shards
    assert shards is not None
    assert (shards.shards, shards.groups, shards.carrier) == (groups + 2, groups, where)
    assert tables(result) == tables(plain)


def test_groups_take_turns_on_the_workers_there_are() -> None:
    choice = CarrierChoice("dask", ("a", "b", "a", "b", "a"))
    communicator = Communicator("name", choice, 5)
    assert [list(communicator.groups_of(worker)) for worker in range(communicator.workers)] == [[0, 2, 4], [1, 3]]
    for worker in range(2):
        assert {choice.addresses[group] for group in communicator.groups_of(worker)} == {"ab"[worker]}
    alone = Communicator("name", replace(choice, addresses=("a",) * 3), 3)
    assert [list(alone.groups_of(worker)) for worker in range(alone.workers)] == [[0, 1, 2]]


@pytest.mark.parametrize("carrier", ["shared-memory", pytest.param("dask", marks=pytest.mark.slow)])
def test_a_limit(rows: Path, plain: Result, processes: Client, tmp_path: Path, carrier: str) -> None:
    bounding = {"carrier": carrier, "max_seconds": 1e-9}
    result = mine(rows, tmp_path / "out", client=processes, partitions=3, bounding=bounding, **QUIET)
    runs.check_intervals(result, plain)
    assert_clean(processes, result)


@pytest.mark.parametrize("levels", [9, *(pytest.param(levels, marks=pytest.mark.slow) for levels in (1, 2))])
def test_a_limit_in_the_midst(
    rows: Path, plain: Result, mined: Mine, monkeypatch: pytest.MonkeyPatch, levels: int
) -> None:
    """With a checkpoint that is always due, each level is a task."""
    asked = count()
    monkeypatch.setattr(_Limits, "reached", lambda self, exchanges: next(asked) >= levels)
    result = mined(rows, partitions=3, device="cpu", checkpoint={"every_seconds": 0.0})
    runs.check_intervals(result, plain)
    steps = result.manifest.bounding.steps  # levels at which edges left, which level 0 is not: all have triangles
    assert steps < levels
    assert (steps > 0) is (levels > 1)


@pytest.mark.slow
def test_the_command_exits_5(rows: Path, plain: Result, tmp_path: Path) -> None:
    arguments = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--device", "cpu"]
    arguments += ["--workers", "2", "--partitions", "2", "--max-seconds", "1e-9", "--set", "output.report=false"]
    found = call(*arguments)
    assert found.exit_code == 5, found.stderr
    runs.check_intervals(Result(tmp_path / "out"), plain)


def ended(monkeypatch: pytest.MonkeyPatch, after: int, run: Callable[[], object]) -> None:
    """A run that loses its cluster after checkpoints of some levels."""
    emit, kept = Events.emit, count(1)

    def lose(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if event == "kept" and next(kept) == after:
            raise ClusterLost("planted")

    with monkeypatch.context() as patch:
        patch.setattr(Events, "emit", lose)
        with pytest.raises(ClusterLost, match="planted"):
            run()


@pytest.mark.parametrize(
    ("carrier", "after"),
    [
        (None, 4),
        pytest.param("dask", 3, marks=pytest.mark.slow),
        pytest.param(None, 1, marks=pytest.mark.slow),
        pytest.param("shared-memory", 2, marks=pytest.mark.slow),
    ],
)
def test_the_next_run_goes_on(
    rows: Path,
    plain: Result,
    client: Client,
    processes: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    carrier: str | None,
    after: int,
) -> None:
    """With any carrier: checkpoints do not depend on it. `None` is for groups in one process."""
    if carrier is None:
        in_groups(monkeypatch, 2, 4)
    how: dict[str, Any] = {"client": processes if carrier else client, "partitions": 3}
    kept: dict[str, Any] = {"checkpoint": {"every_seconds": 0.0}, "bounding.carrier": carrier or "auto"}
    ended(monkeypatch, after, lambda: mine(rows, tmp_path / "out", **how, **kept, **QUIET))
    result = mine(rows, tmp_path / "out", **how, **QUIET)
    assert tables(result) == tables(plain)
    assert [stage.stage for stage in result.manifest.stages].count("restore") == 2
    found, expected = result.manifest.bounding, plain.manifest.bounding
    assert found.steps == expected.steps
    assert found.evaluations == sum(part.owned for part in result.manifest.partitions)
    events = [json.loads(line)["event"] for line in (result.path / "log.jsonl").read_text().splitlines()]
    assert "checkpoint_refused" not in events
    runs.assert_nothing_left(how["client"])


class Dropping(Wrapped):
    """Loses the last message of the first packet with messages."""

    dropped = 0

    def changed(self, sender: int, packet: GroupPacket) -> GroupPacket:
        if Dropping.dropped or sender == self.rank or len(packet.common) < HEADER or len(packet.own) <= 1:
            return packet
        messages = int(packet.own[0])
        table = len(packet.own) - 2 * messages
        if not messages:
            return packet
        Dropping.dropped += 1
        starts = np.minimum(packet.own[1:table], messages - 1)
        targets, values = packet.own[table : table + messages - 1], packet.own[table + messages : -1]
        return GroupPacket(
            packet.common, np.concatenate([np.array([messages - 1], np.uint32), starts, targets, values])
        )


def test_a_message_that_is_lost_ends_the_run(
    rows: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def opened(groups: int) -> Sequence[Wrapped]:
        return [Dropping(carrier) for carrier in MemoryCarrier.open(groups)]

    in_groups(monkeypatch, 2, 2)
    monkeypatch.setattr(Dropping, "dropped", 0)
    monkeypatch.setattr("edgemill.pipeline.cluster.carriers.MemoryCarrier", SimpleNamespace(open=opened))
    with pytest.raises(InternalError) as caught:
        mine(rows, tmp_path / "out", client=client, partitions=2, **QUIET)
    assert (Dropping.dropped, caught.value.exit_code) == (1, 1)
    del caught
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["out.failed.log.jsonl"]
    runs.assert_nothing_left(client)


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_carrier_that_cannot_be_used_is_refused(
    rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, shared: bool
) -> None:
    """Shared memory of workers that seem to be on several hosts. They can use Dask's connections."""
    names = map(str, count())
    monkeypatch.setattr(carrier_choice, "SHARED_MEMORY", str(tmp_path / "none"))
    if not shared:
        monkeypatch.setattr(execution, "_BOOT_ID", SimpleNamespace(read_text=partial(next, names)))
    asked: dict[str, Any] = {"partitions": 2, "bounding.carrier": "shared-memory"}
    with runs.cluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp") as client:
        if shared:
            result = mine(rows, tmp_path / "out", client=client, **asked, **QUIET)
        else:
            with pytest.raises(UsageError, match="use auto") as caught:
                mine(rows, tmp_path / "out", client=client, **asked, **QUIET)
            assert caught.value.exit_code == 2
            del caught
            assert not (tmp_path / "out").exists()
            runs.assert_nothing_left(client)
            result = mine(rows, tmp_path / "out", client=client, partitions=2, **QUIET)
        assert tables(result) == tables(plain)
        assert result.manifest.bounding.shards is not None
        assert result.manifest.bounding.shards.carrier == ("shared-memory" if shared else "dask")
        runs.assert_nothing_left(client)


def test_what_a_plan_tells_of_shards(rows: Path) -> None:
    settings = make_settings(str(rows), "out", partitions=3)
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(4, 2, 0))
    assert (plan.partitions, plan.shards, plan.method, plan.on_disk) == (3, 6, "peel", False)
    told = runs.plan_lines(plan)
    assert all(fact in told["partitions"] for fact in ("6 shards", "3 groups", "partitioning.count"))
    assert "for the largest group, " in told["memory"]
    assert plan_run(settings, source, Capacity(1, 2, 0)).shards == 3
    assert [remedy(plan_run(settings, source, Capacity(own, 2, 0))) for own in (3, 4)] == [
        "start more workers",
        "raise partitioning.count",
    ]
    few = plan_run(make_settings(str(rows), "out"), source, Capacity(4, 2, 0))
    assert (few.partitions, few.shards) == (1, 0)  # a graph so small is peeled alone
    room = int((WORKER_BYTES + plan._share_bytes) / FILL) - 1000
    tight = plan_run(settings, source, Capacity(4, 2, room))
    assert (tight.partitions, tight.on_disk) == (3, True)
    assert runs.plan_lines(tight)["partitions"].endswith(", their rows in files")


def test_as_many_groups_as_edges_are_worth(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With less memory there is a group on each worker."""
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    edges = plan_run(settings, source, Capacity(1, 1, 0)).edges
    monkeypatch.setattr(planning, "LEAST_EDGES", edges // 2)
    bands = plan_run(settings, source, Capacity(5, 2, 0))
    assert (bands.partitions, bands.band_workers) == (1, 2)
    assert "2 workers" in bands.reason and "bands" in bands.reason
    room = int(bands.worker_bytes / FILL) - 1000
    some = plan_run(settings, source, Capacity(5, 2, room))
    assert (some.partitions, some.shards) == (2, 4)
    assert "2 workers are enough" in some.reason
    every = plan_run(settings, source, Capacity(2, 2, room))
    assert (every.partitions, every.reason) == (2, "one for each worker")
    room = int((WORKER_BYTES + some._share_bytes) / FILL) - 1000
    assert plan_run(settings, source, Capacity(5, 2, room)).partitions == 5


def test_what_a_report_tells_of_shards(rows: Path, processes: Client, tmp_path: Path) -> None:
    result = mine(rows, tmp_path / "out", client=processes, partitions=3, device="cpu")
    manifest = result.manifest
    how = manifest.bounding.shards
    assert how is not None
    page = read_page((result.path / "report.html").read_text())
    assert f"{manifest.bounding.steps} levels" in page.text
    assert "3 shards" in page.text
    found = dict(page.tables["Peeling by shards"][1:])
    assert found["rounds: exchanges after which edges were removed"] == f"{how.rounds:,}"
    assert found["edges removed"] == f"{manifest.bounding.evaluations:,}"
    assert found["row entries that the busiest shard read, over the mean"] == f"{how.busiest:.2f}"
    groups = [[int(cell.replace(",", "")) for cell in row] for row in page.tables["Groups, the largest first"][1:]]
    assert sorted(groups) == [[p.partition, p.owned, p.inner, p.cut, p.vertices] for p in manifest.partitions]
    held = sum(part.owned for part in manifest.partitions)
    assert all(fact in page.text for fact in (f"{held:,}", f"{manifest.counts.edges - held:,}"))
    assert "partitioning.count" in page.text
    written = io.StringIO()
    print_result(manifest, "out", Console(width=100, file=written), detail=True)
    shown = [line.split() for line in written.getvalue().splitlines()]
    assert ["groups"] in shown
    assert ["group", "owned", "inner", "cut", "vertices"] in shown
    for line in (["shards", "3"], ["carrier", "shared-memory"], ["exchanges", f"{how.exchanges:,}"]):
        assert line in shown
