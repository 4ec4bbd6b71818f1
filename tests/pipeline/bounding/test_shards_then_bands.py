"""Runs in shards that leave their last edges to bands or one worker: results, limits, checkpoints, lost workers."""

from __future__ import annotations

from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from distributed import Client

import runs
import shard_faults
from edgemill.pipeline import ClusterLost, InternalError, Result, mine
from edgemill.pipeline.bounding import peel_bands, shards_then_bands
from edgemill.pipeline.bounding.bounding import _Limits
from edgemill.pipeline.bounding.shards_then_bands import ShardsThenBands
from edgemill.pipeline.cli.documents import plan_document
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.cluster.watchdog import workers_of
from edgemill.pipeline.events import Events
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan import choice as planning
from edgemill.pipeline.plan import plan as plans
from edgemill.pipeline.plan import seconds
from edgemill.pipeline.plan.choice import plan_run
from edgemill.pipeline.plan.plan import Plan
from edgemill.pipeline.report import run_sections
from edgemill.pipeline.settings.sources import make_settings
from edgemill.pipeline.stages.limits import FILL
from known_graphs import SKIP_REASON, known_graph
from lost_workers import Killer, Started, dying

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
SOON = pytest.mark.timeout(60)
"""A run that waits for a lost task would never end."""
ALL = 10**9
"""More edges than a graph here has: shards are not built."""


def half(plain: Result) -> int:
    """Half of the edges with triangles."""
    return most(plain) // 2


def most(plain: Result) -> int:
    """All edges with triangles but one: some are left for several bands."""
    return sum(1 for support in runs.column(plain, "support").values() if support) - 1


def leaving(
    monkeypatch: pytest.MonkeyPatch, left: int | None, workers: int, groups: int = 2, shards: int | None = None
) -> None:
    """Have every run plan shards that stop at so many edges, and then this number of workers."""
    on_cpus = planning._plan_on_cpus

    def plan(one: Plan, asked: int | str) -> Plan:
        found = replace(on_cpus(one, asked), bands_at=left, bands_on=workers)
        return replace(found, partitions=groups, shards=shards or groups)

    monkeypatch.setattr(planning, "_plan_on_cpus", plan)


def mined(rows: Path, out: Path, client: Client, carrier: str = "shared-memory", **how: Any) -> Result:
    settings: dict[str, Any] = {"client": client, "partitions": 2, "bounding": {"carrier": carrier}} | QUIET | how
    return mine(rows, out, **settings)


@pytest.mark.parametrize(
    ("carrier", "workers", "groups", "shards"),
    [
        ("shared-memory", 2, 2, 2),
        ("dask", 2, 3, 5),
        ("shared-memory", 1, 2, 4),
        pytest.param("auto", 1, 1, 2, marks=pytest.mark.slow),
        pytest.param("shared-memory", 2, 1, 1, marks=pytest.mark.slow),
        pytest.param("dask", 1, 5, 5, marks=pytest.mark.slow),
    ],
)
def test_as_in_one_process(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    carrier: str,
    workers: int,
    groups: int,
    shards: int,
) -> None:
    leaving(monkeypatch, half(plain), workers, groups, shards)
    result = mined(rows, tmp_path / "out", two_workers, carrier)
    assert shard_faults.same(result, plain)
    found = result.manifest.bounding
    assert found.shards is not None
    assert (found.shards.groups, found.shards.shards, len(result.manifest.partitions)) == (groups, shards, groups)
    assert 0 < found.shards.handed_over <= half(plain)
    assert 0 < found.shards.rounds < found.shards.exchanges
    assert found.evaluations == sum(part.owned for part in result.manifest.partitions)
    if workers == 1:
        assert found.bands is None
        assert found.steps == plain.manifest.bounding.steps
        assert not started.at("filter")
    else:
        assert found.bands is not None
        assert found.bands.workers == len(started.at("filter")) == 2
        assert found.bands.bands < found.steps
    stopped = f"Shards stopped when {found.shards.handed_over:,} edges were left, which"
    text = "".join(run_sections.bounding(result.manifest).text)
    assert f"{stopped} {'one worker peeled alone' if workers == 1 else '2 workers peeled in'}" in text
    (exchange,) = result.manifest.exchanges
    assert (exchange.unsettled, exchange.step) == (0, found.steps)
    shard_faults.assert_nothing_left(two_workers, result.manifest.run, groups)


@pytest.mark.skipif(SKIP_REASON is not None, reason=str(SKIP_REASON))
@pytest.mark.timeout(600)
@pytest.mark.parametrize(
    ("name", "workers", "part"),
    [
        ("oregon1_010331", 2, 2),
        *(
            pytest.param(name, workers, part, marks=pytest.mark.slow)
            for name, workers, part in (
                ("oregon1_010331", 1, 3),
                ("ca-GrQc", 2, 3),
                ("ca-GrQc", 1, 2),
                ("ca-GrQc", 2, 9),
            )
        ),
    ],
)
def test_known_graphs(
    two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, workers: int, part: int
) -> None:
    """At a share of their edges."""
    graph = known_graph(name)
    expected = graph.lambda_table()
    leaving(monkeypatch, sum(1 for lam in expected[2] if lam) // part, workers)
    result = mined(graph.path, tmp_path / "out", two_workers)
    edges = result.edges.to_table()
    for column, values in zip(("src", "dst", "lambda"), expected, strict=True):
        np.testing.assert_array_equal(edges[column].to_numpy(), values)
    shards = result.manifest.bounding.shards
    assert shards is not None
    assert shards.handed_over > 0


@pytest.mark.parametrize(("left", "workers"), [(ALL, 2), (ALL, 1), (1, 2), pytest.param(1, 1, marks=pytest.mark.slow)])
def test_all_or_none_are_left(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    left: int,
    workers: int,
) -> None:
    """Shards that leave all edges are not built. The last edges of a graph go together, so that none is left."""
    leaving(monkeypatch, left, workers)
    result = mined(rows, tmp_path / "out", two_workers)
    assert shard_faults.same(result, plain)
    found = result.manifest.bounding
    assert found.shards is not None
    edges = sum(part.owned for part in result.manifest.partitions)
    assert found.shards.handed_over == (edges if left == ALL else 0)
    assert (found.bands is not None) is (left == ALL and workers == 2)
    assert (found.shards.exchanges > 0) is (left != ALL)
    shard_faults.assert_nothing_left(two_workers, result.manifest.run)


def test_rows_in_files(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Results of tasks are in files then, too."""
    leaving(monkeypatch, half(plain), 2)
    monkeypatch.setattr(Plan, "on_disk", True)
    monkeypatch.setattr(Plan, "in_waves", True)
    result = mined(rows, tmp_path / "out", two_workers)
    assert shard_faults.same(result, plain)
    assert result.manifest.bounding.bands is not None
    shard_faults.assert_nothing_left(two_workers, result.manifest.run)


# Limits


@SOON
@pytest.mark.parametrize("left", ["half", "all"])
def test_a_limit_before_bands(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    """Shards end after their first level, or have left all edges."""
    leaving(monkeypatch, ALL if left == "all" else half(plain), 2)
    result = mined(rows, tmp_path / "out", two_workers, bounding={"carrier": "shared-memory", "max_seconds": 1e-9})
    runs.check_intervals(result, plain)
    assert result.manifest.bounding.bands is None
    shard_faults.assert_nothing_left(two_workers, result.manifest.run)


@SOON
@pytest.mark.parametrize("calls", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_limit_after_shards(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    workers: int,
    calls: int,
) -> None:
    """When shards have stopped, or after another call that is as short as can be: a threshold of the filter, or a
    level.
    """
    asked, exchange = count(), ShardsThenBands.exchange

    def short(self: ShardsThenBands, seconds: float | None, most: int | None) -> None:
        exchange(self, None if self._rest is None else 0.0, most)

    leaving(monkeypatch, half(plain), workers)
    monkeypatch.setattr(ShardsThenBands, "exchange", short)
    monkeypatch.setattr(_Limits, "reached", lambda self, exchanges: next(asked) >= calls)
    result = mined(rows, tmp_path / "out", two_workers)
    runs.check_intervals(result, plain)
    found = result.manifest.bounding
    assert found.shards is not None
    assert result.manifest.unsettled <= found.shards.handed_over
    assert (found.bands is not None) is (workers == 2 and calls > 1)
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
    leaving(monkeypatch, most(plain), 2)
    monkeypatch.setattr(peel_bands, "_passed", lambda deadline: bool(started.at("band")))
    asked = count()
    monkeypatch.setattr(_Limits, "reached", lambda self, exchanges: next(asked) >= 2)
    result = mined(rows, tmp_path / "out", two_workers)
    runs.check_intervals(result, plain)
    assert started.at("band")


# Checkpoints


@SOON
@pytest.mark.parametrize(
    ("where", "workers", "later"),
    [
        ("hand-over", 2, "same"),
        ("band", 2, "never"),
        *(
            pytest.param(where, workers, later, marks=pytest.mark.slow)
            for where, workers, later in (
                ("shards", 2, "same"),
                ("filter", 2, "same"),
                ("peel", 1, "same"),
                ("shards", 2, "never"),
                ("hand-over", 1, "same"),
                ("hand-over", 2, "never"),
                ("filter", 2, "never"),
                ("band", 2, "same"),
                ("peel", 1, "never"),
                ("peel", 1, "bands"),
            )
        ),
    ],
)
def test_the_next_run_goes_on(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    where: str,
    workers: int,
    later: str,
) -> None:
    """From a checkpoint in shards, when they have stopped, and after that; also if the plan is now another one."""
    emit, exchange = Events.emit, ShardsThenBands.exchange
    exchanges = 0

    def lose(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        ended = {"shards": exchanges == 2, "hand-over": handed == 1, "peel": handed == 3}
        if event == "kept" and (ended[where] if where in ended else bool(started.at(where))):
            raise ClusterLost("planted")

    handed, left = 0, most(plain) if where == "band" else half(plain)

    def noted(self: ShardsThenBands, seconds: float | None, most: int | None) -> None:
        nonlocal exchanges, handed
        exchange(self, seconds, most)
        exchanges += 1
        handed += self._rest is not None

    with monkeypatch.context() as patch:
        leaving(patch, left, workers)
        patch.setattr(Events, "emit", lose)
        patch.setattr(ShardsThenBands, "exchange", noted)
        with pytest.raises(ClusterLost, match="planted"):
            mined(rows, tmp_path / "out", two_workers, checkpoint={"every_seconds": 0.0})
    filters = len(started.at("filter"))
    leaving(monkeypatch, None if later == "never" else left, {"never": 1, "bands": 2}.get(later, workers))
    result = mined(rows, tmp_path / "out", two_workers)
    assert shard_faults.same(result, plain)
    assert [stage.stage for stage in result.manifest.stages].count("restore") == 2
    found = result.manifest.bounding
    assert found.evaluations == sum(part.owned for part in result.manifest.partitions)
    assert found.shards is not None
    assert (found.shards.handed_over > 0) is (where != "shards" or later != "never")
    in_bands = where in ("filter", "band") or (workers == 2 and later == "same")
    assert (found.bands is not None) is in_bands
    if where == "band":
        assert found.bands is not None
        assert len(started.at("band")) <= found.bands.bands  # none is peeled again
    if workers == 1:
        assert filters == len(started.at("filter")) == 0
    assert "checkpoint_refused" not in [line["event"] for line in shard_faults.log_of(result)]
    runs.assert_nothing_left(two_workers)


@SOON
@pytest.mark.parametrize("workers", [pytest.param(1, marks=pytest.mark.slow), 2])
def test_a_checkpoint_that_is_always_due(
    rows: Path,
    plain: Result,
    two_workers: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    started: Started,
    workers: int,
) -> None:
    leaving(monkeypatch, half(plain), workers)
    result = mined(rows, tmp_path / "out", two_workers, checkpoint={"every_seconds": 0.0})
    assert shard_faults.same(result, plain)
    bands = result.manifest.bounding.bands
    assert bands is None or len(started.at("band")) <= bands.bands
    runs.assert_nothing_left(two_workers)


# Lost workers


def dying_in(where: str) -> Any:
    """A worker that runs it ends when it comes to shards, to a task after them, or to one of those of bands."""
    if where in ("filter", "band"):
        return dying(where)

    def plant() -> None:
        import os
        import signal

        from edgemill.pipeline.bounding import shard_peeling
        from edgemill.tasks.bands import remainder
        from edgemill.tasks.bands.remainder import HandedOver
        from edgemill.tasks.bound import peel

        def die(*_: Any, **__: Any) -> Any:
            os.kill(os.getpid(), signal.SIGKILL)

        if where == "hand-over":
            setattr(HandedOver, "of", die)  # noqa: B010
        elif where == "gather":
            remainder._owned = die
        elif where == "peel":
            peel._levels = die
        else:
            setattr(shard_peeling, "peel_groups", die)  # noqa: B010

    return plant


@SOON
@pytest.mark.parametrize(
    ("where", "workers", "victim"),
    [
        ("shards", 2, 1),
        ("band", 2, 0),
        *(
            pytest.param(where, workers, victim, marks=pytest.mark.slow)
            for where, workers, victim in (
                ("filter", 2, 1),
                ("peel", 1, 0),
                ("shards", 2, 0),
                ("hand-over", 2, 0),
                ("hand-over", 1, 1),
                ("gather", 2, 0),
                ("gather", 2, 1),
                ("filter", 2, 0),
                ("band", 2, 1),
            )
        ),
    ],
)
def test_a_killed_worker(
    rows: Path,
    plain: Result,
    pair: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    where: str,
    workers: int,
    victim: int,
) -> None:
    """The run goes on, or begins its search again."""
    leaving(monkeypatch, half(plain), workers)
    address = list(workers_of(pair))[victim]
    pair.run(dying_in(where), workers=[address])
    result = mined(rows, tmp_path / "out", pair)
    assert address not in workers_of(pair)
    assert shard_faults.same(result, plain)
    found = result.manifest.bounding
    assert found.shards is not None
    assert found.shards.handed_over > 0
    assert (found.bands is not None) is (workers == 2)
    events = [line["event"] for line in shard_faults.log_of(result)]
    if where in ("shards", "hand-over"):
        assert "rolled_back" in events
    if where == "gather":  # a task that nobody waits for may still look for the one that was lost
        runs.assert_nothing_left(pair)
    else:
        shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
@pytest.mark.parametrize("victim", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("workers", [2, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("after", ["hand-over", pytest.param("rest", marks=pytest.mark.slow)])
def test_a_worker_killed_between_two_calls(
    rows: Path,
    plain: Result,
    pair: Client,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    after: str,
    workers: int,
    victim: int,
) -> None:
    leaving(monkeypatch, half(plain), workers)
    exchange, kill = ShardsThenBands.exchange, Killer(pair, victim)

    def then_kill(self: ShardsThenBands, seconds: float | None, most: int | None) -> None:
        handed = self._rest is not None
        exchange(self, seconds, most)
        if handed if after == "rest" else self._rest is not None:
            kill()

    monkeypatch.setattr(ShardsThenBands, "exchange", then_kill)
    result = mined(rows, tmp_path / "out", pair)
    assert kill.killed
    assert shard_faults.same(result, plain)
    if after == "hand-over":
        assert "rolled_back" not in [line["event"] for line in shard_faults.log_of(result)]
    shard_faults.assert_nothing_left(pair, result.manifest.run)


@SOON
def test_an_internal_error_ends_the_run(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise InternalError("planted")

    leaving(monkeypatch, ALL, 2)
    monkeypatch.setattr(shards_then_bands, "handed_intervals", fail)
    with runs.cluster(n_workers=2, threads_per_worker=1, processes=False, protocol="tcp") as client:
        with pytest.raises(InternalError, match="planted") as caught:
            mined(rows, tmp_path / "out", client)
        assert caught.value.exit_code == 1
        del caught
        assert not (tmp_path / "out").exists()
        runs.assert_nothing_left(client)


# Plans


@pytest.fixture
def worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small graphs are worth several workers, and bands."""
    monkeypatch.setattr(planning, "LEAST_EDGES", 1)
    monkeypatch.setattr(seconds, "GATHERING_SECONDS", 0)
    monkeypatch.setattr(seconds, "GATHERED_EDGE_SECONDS", 0)


@pytest.mark.usefixtures("worth_it")
@pytest.mark.parametrize("hosts", [1, 3])
def test_what_a_plan_tells(rows: Path, monkeypatch: pytest.MonkeyPatch, hosts: int) -> None:
    """Of a worker that has room for all edges with triangles once they are in shards, and of one for half of them."""
    monkeypatch.setattr(Plan, "on_disk", False)
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    capacity = Capacity(3, 2, 0, hosts=hosts, host_threads=6 // hosts)
    room = int(plan_run(settings, source, capacity).worker_bytes / FILL) - 1000
    roomy = plan_run(settings, source, replace(capacity, memory_bytes=room))
    assert roomy.bands_at is not None
    closed = roomy.edges * roomy.graph.with_triangles
    assert roomy.bands_at > closed > 0
    less = (roomy.bands_at - closed / 2) * (plans.WORKER_COPY_BYTES + plans.BAND_COPY_BYTES * (hosts > 1))
    plan = plan_run(settings, source, replace(capacity, memory_bytes=room - int(less / FILL)))
    assert plan.bands_at is not None
    assert plan.bands_at == plan.remaining_edges(hosts > 1) == pytest.approx(closed / 2, abs=2)
    for one in (plan, roomy):
        assert (one.partitions, one.in_shards, one.in_bands, one.bands_on) == (3, True, False, hosts)
    workers, how = "each of 3 workers holds", "peels in bands of λ"
    if hosts == 1:
        workers, how = "one worker holds", "peels with the 6 cores of its host"
    left = f"{float(f'{plan.bands_at:.3g}'):,.0f}"
    assert plan.reason == f"one for each worker, until ~{left} edges are left, which {workers} and {how}"
    assert roomy.reason == f"one for each worker, to count triangles; {workers} all edges that have some, and {how}"
    told = runs.plan_lines(plan)
    assert told["partitions"] == f"6 shards in 3 groups: {plan.reason}"
    assert told["time"].endswith("s in shards to the end")
    assert plan_document(plan)["bands_at"] == plan.bands_at
    assert plan.seconds is not None
    assert plan.seconds_saved > 0
    assert replace(plan, bands_at=None).seconds == pytest.approx(plan.seconds + plan.seconds_saved)
    monkeypatch.setattr(Plan, "on_disk", True)
    assert runs.plan_lines(plan)["partitions"] == f"6 shards in 3 groups, their rows in files: {plan.reason}"


@pytest.mark.usefixtures("worth_it")
def test_more_memory_for_more_edges(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As many edges as a worker has room for, and none in a worker that has room for none."""
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    room = int(plan_run(settings, source, Capacity(3, 2, 0)).worker_bytes / FILL)
    found = []
    monkeypatch.setattr(Plan, "on_disk", False)
    for less in (1000, 101_000):
        plan = plan_run(settings, source, Capacity(3, 2, room - less))
        assert plan.bands_at is not None
        found.append(plan.bands_at)
    of_edge = plans.WORKER_COPY_BYTES + plans.BAND_COPY_BYTES
    assert found[0] - found[1] == pytest.approx(FILL * 100_000 / of_edge, abs=2)
    none = plan_run(settings, source, Capacity(3, 2, room // 2))
    assert none.in_shards
    assert none.bands_at is None


def test_only_where_it_saves_time(rows: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Not for a small graph, not for two threads, whatever the graph, and not where a number of groups is given."""
    monkeypatch.setattr(planning, "LEAST_EDGES", 1)
    settings = make_settings(str(rows), "out")
    source = open_input(settings)
    room = int(plan_run(settings, source, Capacity(3, 2, 0)).worker_bytes / FILL) - 1000
    small = plan_run(settings, source, Capacity(3, 2, room))
    assert (small.in_shards, small.bands_at) == (True, None)
    monkeypatch.setattr(seconds, "GATHERING_SECONDS", 0)
    monkeypatch.setattr(seconds, "GATHERED_EDGE_SECONDS", 0)
    assert plan_run(settings, source, Capacity(3, 2, room)).bands_at is not None
    monkeypatch.setattr(seconds, "SHARDS_SHARE", 0.5)
    assert plan_run(settings, source, Capacity(3, 2, room)).bands_at is None
    monkeypatch.setattr(seconds, "SHARDS_SHARE", 9)
    given = plan_run(make_settings(str(rows), "out", partitions=3), source, Capacity(3, 2, room))
    assert (given.in_shards, given.bands_at) == (True, None)


def test_the_seconds_that_it_saves() -> None:
    """More for more triangles and workers; without an estimate only whether it pays."""
    saved = seconds.seconds_saved
    assert saved(10**6, 2 * 10**6, 1e9, 4, 4) > saved(10**6, 2 * 10**6, 1e9, 4, 2) > 0
    assert saved(10**6, 2 * 10**6, 1e9, 4, 4) > saved(10**6, 2 * 10**6, 1e8, 4, 4)
    assert saved(10**7, 10**7, 1e9, 4, 4) == saved(10**8, 10**7, 1e9, 4, 4)
    assert saved(10**6, 2 * 10**6, float("inf"), 4, 4) == float("inf")
    assert saved(10**6, 2 * 10**6, 0, 4, 4) < 0
