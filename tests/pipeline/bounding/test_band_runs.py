"""Runs in bands of λ: equal results on several workers, limits, checkpoints, lost workers and workers that join."""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from distributed import Client

import runs
import shard_faults
from edgemill.pipeline import ClusterLost, InternalError, Result, mine
from edgemill.pipeline.bounding import peel_bands
from edgemill.pipeline.bounding.peel_bands import PeelBands
from edgemill.pipeline.cluster import execution
from edgemill.pipeline.cluster.carriers import Communicator, carrier_for
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.cluster.execution import Capacity, by_host, cores_here
from edgemill.pipeline.cluster.watchdog import workers_of
from edgemill.pipeline.events import Events
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan import choice as planning
from edgemill.pipeline.plan.choice import plan_run, plan_without_sample
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages.limits import FILL
from edgemill.tasks.bands.filtering import Bands, CoarseFilter
from edgemill.tasks.errors import StateLost
from edgemill.tasks.generate import generate
from lost_workers import Killer, Started, dying

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
SOON = pytest.mark.timeout(60)
"""A run that waits for a lost task would never end."""


@pytest.fixture(autouse=True)
def _small_graphs_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_EDGES", 1)


def banded(carrier: str) -> dict[str, Any]:
    """Settings with which each worker takes bands, also on one machine."""
    return QUIET | {"bounding.carrier": carrier}


def assert_exact(result: Result, plain: Result, workers: int) -> None:
    """The tables of the plain run, by so many workers."""
    assert shard_faults.same(result, plain)
    bands = result.manifest.bounding.bands
    assert bands is not None
    assert bands.workers == workers


@pytest.mark.parametrize("workers", [2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("carrier", ["shared-memory", "dask"])
def test_as_in_one_process(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, started: Started, carrier: str, workers: int
) -> None:
    if workers == 2:
        result = mine(rows, tmp_path / "out", client=two_workers, **banded(carrier))
        shard_faults.assert_nothing_left(two_workers, result.manifest.run)
    else:
        with runs.cluster(n_workers=workers, threads_per_worker=1) as client:
            result = mine(rows, tmp_path / "out", client=client, **banded(carrier))
            shard_faults.assert_nothing_left(client, result.manifest.run, workers)
    assert_exact(result, plain, workers)
    manifest = result.manifest
    assert manifest.plan is not None
    assert f"{workers} workers" in manifest.plan.reason and "bands" in manifest.plan.reason
    assert (len(manifest.partitions), manifest.bounding.method, manifest.bounding.shards) == (1, "peel", None)
    bands = manifest.bounding.bands
    assert bands is not None
    assert bands.bands == manifest.bounding.steps > workers
    assert bands.passes >= bands.exchanges >= 0
    assert manifest.bounding.evaluations == sum(1 for support in runs.column(result, "support").values() if support)
    for name in ("count-share", "filter"):
        assert len(started.at(name)) == len(set(started.at(name))) == workers
    assert set(started.at("band")) <= set(started.at("filter"))
    assert 0 < len(started.at("band")) <= bands.bands


@pytest.mark.slow
@pytest.mark.parametrize("carrier", ["shared-memory", "dask"])
def test_a_larger_graph(client: Client, tmp_path: Path, carrier: str) -> None:
    generate("rmat", tmp_path / "rows", files=3, seed=4, scale=13, edge_factor=16)
    plain = mine(tmp_path / "rows", tmp_path / "plain", client=client, partitions=1, **QUIET)
    with runs.cluster(n_workers=3, threads_per_worker=1) as own:
        result = mine(tmp_path / "rows", tmp_path / "out", client=own, **banded(carrier))
        shard_faults.assert_nothing_left(own, result.manifest.run, 3)
    assert_exact(result, plain, 3)
    bands = result.manifest.bounding.bands
    assert bands is not None
    assert bands.exchanges > 0
    assert bands.bytes > 0


def test_workers_of_a_machine_are_one_host(rows: Path, plain: Result, two_workers: Client, tmp_path: Path) -> None:
    cores = min(2, len(os.sched_getaffinity(0)))
    result = mine(rows, tmp_path / "out", client=two_workers, **QUIET)
    assert shard_faults.same(result, plain)
    manifest = result.manifest
    assert (len(manifest.partitions), manifest.bounding.shards, manifest.bounding.bands) == (1, None, None)
    assert manifest.plan is not None
    uses = f", and uses the {cores} cores of its host" if cores > 1 else ""
    assert manifest.plan.reason.startswith("one worker") and manifest.plan.reason.endswith(uses)


def test_workers_of_this_process_are_one_host(rows: Path, plain: Result, tmp_path: Path) -> None:
    with runs.cluster(n_workers=2, threads_per_worker=1, processes=False) as client:
        result = mine(rows, tmp_path / "out", client=client, **QUIET)
        runs.assert_nothing_left(client)
    assert shard_faults.same(result, plain)
    assert (len(result.manifest.partitions), result.manifest.bounding.bands) == (1, None)


# Lost workers


@SOON
@pytest.mark.parametrize(
    ("where", "carrier", "victim"),
    [
        pytest.param("count", "shared-memory", 0, marks=pytest.mark.slow),
        ("filter", "shared-memory", 0),
        ("band", "dask", 0),
        *(
            pytest.param(where, carrier, victim, marks=pytest.mark.slow)
            for where in ("count", "filter", "band")
            for carrier, victim in (("shared-memory", 1), ("dask", 1))
        ),
        pytest.param("filter", "dask", 0, marks=pytest.mark.slow),
    ],
)
def test_a_killed_worker(
    rows: Path, plain: Result, pair: Client, tmp_path: Path, where: str, carrier: str, victim: int
) -> None:
    """Another takes its place, or the other one goes on alone."""
    address = list(workers_of(pair))[victim]
    pair.run(dying(where), workers=[address])
    result = mine(rows, tmp_path / "out", client=pair, **banded(carrier))
    assert address not in workers_of(pair)
    assert shard_faults.same(result, plain)
    assert result.manifest.bounding.bands is not None
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("after", ["_filter", pytest.param("_peel_bands", marks=pytest.mark.slow)])
def test_a_worker_killed_once_all_have_ended(
    rows: Path, plain: Result, pair: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, after: str, victim: int
) -> None:
    """What it held is made again, or the bounds are; nothing waits for what only that worker may make."""
    following, kill = getattr(PeelBands, after), Killer(pair, victim)

    def then_kill(self: PeelBands, *arguments: Any) -> Any:
        found = following(self, *arguments)
        kill()
        return found

    monkeypatch.setattr(PeelBands, after, then_kill)
    result = mine(rows, tmp_path / "out", client=pair, **banded("shared-memory"))
    assert kill.killed
    assert shard_faults.same(result, plain)
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
@pytest.mark.parametrize("gang", ["filter", "count-share"])
def test_a_worker_killed_once_a_gang_has_ended(
    rows: Path,
    plain: Result,
    pair: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    gang: str,
    victim: int,
) -> None:
    """Before the driver has seen what its task found."""
    wait, kill = Engine.wait_for_gang, Killer(pair, victim)

    def then_kill(self: Engine, *arguments: Any) -> None:
        wait(self, *arguments)
        if started.tasks[-1][0] == gang:
            kill()

    monkeypatch.setattr(Engine, "wait_for_gang", then_kill)
    result = mine(rows, tmp_path / "out", client=pair, **banded("shared-memory"))
    assert kill.killed
    assert shard_faults.same(result, plain)
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
def test_a_worker_killed_while_another_joins(
    rows: Path, plain: Result, pair: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that joins waits for the state of the filter, which was lost."""
    peel, start_on, kill = PeelBands._peel_bands, Engine.start_on, Killer(pair, 0)

    def join(self: PeelBands, *arguments: Any) -> Future:
        pair.cluster.scale(3)  # type: ignore[union-attr]
        pair.wait_for_workers(3, timeout=60)
        return peel(self, *arguments)

    def then_kill(self: Engine, name: str, *arguments: Any) -> list[Future]:
        if name == "join":
            kill()
        return start_on(self, name, *arguments)

    monkeypatch.setattr(PeelBands, "_peel_bands", join)
    monkeypatch.setattr(Engine, "start_on", then_kill)
    result = mine(rows, tmp_path / "out", client=pair, **banded("shared-memory"))
    assert kill.killed
    assert shard_faults.same(result, plain)
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
@pytest.mark.slow
def test_no_worker_comes_in_place_of_a_killed_one(
    rows: Path, plain: Result, pair: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other one peels all bands."""
    monkeypatch.setattr("edgemill.pipeline.cluster.session._RETURN_SECONDS", 1)
    nannies: list[Any] = list(pair.cluster.workers.values())  # type: ignore[union-attr]
    for nanny in nannies:
        nanny.close_gracefully()  # starts no other worker
    pair.run(dying("band"), workers=[list(workers_of(pair))[1]])
    result = mine(rows, tmp_path / "out", client=pair, **banded("shared-memory"))
    assert len(workers_of(pair)) == 1
    assert_exact(result, plain, 2)
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
@pytest.mark.parametrize("carrier", ["dask", pytest.param("shared-memory", marks=pytest.mark.slow)])
def test_a_worker_that_joins_takes_bands(
    rows: Path,
    plain: Result,
    pair: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    carrier: str,
) -> None:
    before, peel = set(workers_of(pair)), PeelBands._peel_bands

    def join(self: PeelBands, *arguments: Any) -> Future:
        pair.cluster.scale(3)  # type: ignore[union-attr]
        pair.wait_for_workers(3, timeout=60)
        return peel(self, *arguments)

    monkeypatch.setattr(PeelBands, "_peel_bands", join)
    result = mine(rows, tmp_path / "out", client=pair, **banded(carrier))
    (joined,) = set(workers_of(pair)) - before
    assert set(started.at("filter")) == before
    assert started.at("join") == [joined]
    assert joined in started.at("band")
    assert_exact(result, plain, 3)
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
def test_a_worker_lost_before_the_filter(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The workers that take part are chosen again."""
    make, called = Communicator.of, count()

    def lost_at_first(*arguments: Any) -> Communicator:
        if next(called) in (0, 2):  # before triangles are counted, and before the filter
            raise StateLost("the worker at tcp://127.0.0.1:1 was lost")
        return make(*arguments)

    monkeypatch.setattr(Communicator, "of", lost_at_first)
    result = mine(rows, tmp_path / "out", client=two_workers, **banded("shared-memory"))
    assert next(called) == 4
    assert_exact(result, plain, 2)


def test_a_lost_worker_has_no_carrier(two_workers: Client) -> None:
    engine = Engine.connect(two_workers, "lost-worker")
    with pytest.raises(StateLost, match=r"tcp://127\.0\.0\.1:1.*lost"):
        carrier_for(engine, "auto", [next(iter(engine.session.workers)), "tcp://127.0.0.1:1"])
    engine.session.close()


# Limits and checkpoints


@SOON
def test_a_limit(rows: Path, plain: Result, two_workers: Client, tmp_path: Path, started: Started) -> None:
    """The filter ends at its first threshold, and there are no bands."""
    bounding = {"carrier": "shared-memory", "max_seconds": 1e-9}
    result = mine(rows, tmp_path / "out", client=two_workers, bounding=bounding, **QUIET)
    runs.check_intervals(result, plain)
    assert len(started.at("filter")) == 2
    assert not started.at("band")
    shard_faults.assert_nothing_left(two_workers, result.manifest.run)


@SOON
def test_a_limit_among_bands(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
) -> None:
    """The limit of time comes once two bands have started, which are peeled to their ends."""
    monkeypatch.setattr(peel_bands, "_passed", lambda deadline: len(started.at("band")) >= 2)
    monkeypatch.setattr(PeelBands, "done", property(lambda self: self.states is not None))
    result = mine(rows, tmp_path / "out", client=two_workers, **banded("dask"))
    runs.check_intervals(result, plain)
    assert len(started.at("band")) == 2
    found = result.manifest.bounding
    assert found.bands is not None
    assert 2 <= found.steps < found.bands.bands  # bands of one level need no task
    shard_faults.assert_nothing_left(two_workers, result.manifest.run)


@SOON
@pytest.mark.parametrize(
    ("carrier", "at"),
    [("shared-memory", "filter"), ("dask", "band"), pytest.param("shared-memory", "band", marks=pytest.mark.slow)],
)
def test_the_next_run_goes_on(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    carrier: str,
    at: str,
) -> None:
    """From a checkpoint at a threshold of the filter, or between two bands. Each call is as short as can be."""
    emit = Events.emit
    how: dict[str, Any] = {"client": two_workers} | banded(carrier)

    def lose(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if event == "kept" and started.at(at):
            raise ClusterLost("planted")

    with monkeypatch.context() as patch:
        patch.setattr(Events, "emit", lose)
        with pytest.raises(ClusterLost, match="planted"):
            mine(rows, tmp_path / "out", checkpoint={"every_seconds": 0.0}, **how)
    assert bool(started.at("band")) is (at == "band")
    result = mine(rows, tmp_path / "out", **how)
    assert_exact(result, plain, 2)
    assert [stage.stage for stage in result.manifest.stages].count("restore") == 2
    bands = result.manifest.bounding.bands
    assert bands is not None
    assert len(started.at("band")) <= bands.bands  # none is peeled again
    assert "checkpoint_refused" not in [line["event"] for line in shard_faults.log_of(result)]
    runs.assert_nothing_left(two_workers)


@SOON
def test_a_checkpoint_that_is_always_due(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, started: Started
) -> None:
    """Each call goes on by a threshold or by a band."""
    how = banded("shared-memory") | {"checkpoint.every_seconds": 0.0}
    result = mine(rows, tmp_path / "out", client=two_workers, **how)
    assert_exact(result, plain, 2)
    bands = result.manifest.bounding.bands
    assert bands is not None
    assert len(started.at("band")) <= bands.bands


# Errors of tasks


class Refusing(CoarseFilter):
    """Fails on the second of its workers."""

    def run(self, seconds: float | None = None, progress: Callable[[int, int], None] | None = None) -> Bands:
        if self._sums.rank == 1:
            raise InternalError("planted")
        return super().run(seconds, progress)


@SOON
@pytest.mark.parametrize("where", ["filter", "band", pytest.param("count", marks=pytest.mark.slow)])
def test_an_internal_error_ends_the_run(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    def fail(*_: object) -> None:
        raise InternalError("planted")

    if where == "filter":
        monkeypatch.setattr(peel_bands, "CoarseFilter", Refusing)
    else:
        monkeypatch.setattr(peel_bands, {"count": "count_share", "band": "peel_band"}[where], fail)
    with runs.cluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp") as client:
        with pytest.raises(InternalError, match="planted") as caught:
            mine(rows, tmp_path / "out", client=client, **banded("shared-memory"))
        assert caught.value.exit_code == 1
        del caught
        assert not (tmp_path / "out").exists()
        runs.assert_nothing_left(client)


# Plans and hosts


def test_what_a_plan_tells_of_bands(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = make_settings(str(rows), "out", bounding={"carrier": "dask"})
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(3, 2, 0))
    assert (plan.partitions, plan.shards, plan.band_workers, plan.in_bands) == (1, 0, 3, True)
    assert all(fact in plan.reason for fact in ("each of 3 workers", "bands of λ"))
    known = plan_without_sample(settings, source, Capacity(3, 2, 0))
    assert known is not None
    assert (known.partitions, known.band_workers, known.graph.rows_looked_at) == (1, 3, 0)
    monkeypatch.setattr(planning, "LEAST_EDGES", plan.edges // 2)
    assert plan_run(settings, source, Capacity(3, 2, 0)).band_workers == 2
    monkeypatch.setattr(planning, "LEAST_EDGES", plan.edges)
    alone = plan_run(settings, source, Capacity(3, 2, 0))
    assert (alone.partitions, alone.in_bands) == (1, False) and "one worker" in alone.reason


def test_shards_where_a_worker_has_no_room_for_all(rows: Path) -> None:
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    room = int(plan_run(settings, source, Capacity(3, 2, 0)).worker_bytes / FILL)
    assert plan_run(settings, source, Capacity(3, 2, room + 1)).band_workers == 3
    small = Capacity(3, 2, room - 1000)
    plan = plan_run(settings, source, small)
    assert (plan.partitions, plan.in_shards, plan.in_bands) == (3, True, False)
    assert plan_without_sample(settings, source, small) is None


@pytest.mark.parametrize(
    "asked",
    [
        {"partitions": 1},
        {"partitions": 3},
        {"partitions": 1, "bounding.method": "band"},
        {"partitions": 1, "bounding.method": "fixpoint"},
    ],
)
def test_no_bands_where_something_else_is_asked_for(rows: Path, asked: dict[str, Any]) -> None:
    settings = make_settings(str(rows), "out", **asked)
    assert not plan_run(settings, open_input(settings), Capacity(3, 2, 0)).in_bands


def test_hosts_of_a_plan(rows: Path) -> None:
    """Bands are for hosts, and one worker has the threads of its host."""
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    one = plan_run(settings, source, Capacity(4, 2, 0, hosts=1, host_threads=8))
    assert (one.partitions, one.in_bands) == (1, False)
    assert all(fact in one.reason for fact in ("one worker", "8 cores of its host"))
    two = plan_run(settings, source, Capacity(4, 2, 0, hosts=2, host_threads=4))
    assert (two.partitions, two.band_workers) == (1, 2)


def test_workers_with_the_same_cores_are_one_host() -> None:
    cores = [("a", 2), ("b", 4), ("a", 2), ("c", 1), ("b", 4)]
    assert by_host(cores) == [[0, 2], [1, 4], [3]]
    assert by_host([cores_here(), cores_here()]) == [[0, 1]]
    assert cores_here()[1] == len(os.sched_getaffinity(0))


@pytest.mark.parametrize("file", ["_CGROUP", "_BOOT_ID"])
def test_workers_of_other_machines_or_control_groups_are_apart(monkeypatch: pytest.MonkeyPatch, file: str) -> None:
    names = map(str, count())
    monkeypatch.setattr(execution, file, SimpleNamespace(read_text=lambda: next(names)))
    assert by_host([cores_here(), cores_here()]) == [[0], [1]]


@pytest.mark.parametrize("file", ["_CGROUP", "_BOOT_ID"])
def test_a_system_without_these_files_has_hosts_too(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, file: str) -> None:
    monkeypatch.setattr(execution, file, tmp_path / "none")
    assert by_host([cores_here(), cores_here()]) == [[0, 1]]


def test_workers_with_other_cores_are_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    own = iter([{0, 1}, {2, 3}, {1, 0}])
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: next(own))
    assert by_host([cores_here() for _ in range(3)]) == [[0, 2], [1]]
