"""What a run tells of itself, in its manifest and its log, is complete and agrees with what it wrote."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

import runs
from edgemill.pipeline import Result
from edgemill.pipeline.cluster.engine import Engine, Future
from edgemill.pipeline.events import STAGES, Events, Stage
from edgemill.tasks.generate import generate

Mine = Callable[..., Result]

CASES: list[tuple[int, str, dict[str, Any]]] = [
    (1, "peel", {}),
    (4, "peel", {}),
    (1, "band", {"method": "band"}),
    (1, "fixpoint", {"method": "fixpoint"}),
    (1, "fixpoint", {"method": "fixpoint", "operator": "tridn"}),
]
QUICK = CASES[:4]


@pytest.fixture(
    params=[case if case in QUICK else pytest.param(case, marks=pytest.mark.slow) for case in CASES],
    ids=lambda case: f"{case[1]}-{case[0]}{case[2].get('operator', '')}",
)
def case(request: pytest.FixtureRequest) -> tuple[int, str, dict[str, Any]]:
    found: tuple[int, str, dict[str, Any]] = request.param
    return found


def test_manifest_and_log(tmp_path: Path, mined: Mine, case: tuple[int, str, dict[str, Any]]) -> None:
    partitions, method, bounding = case
    generate("rmat", str(tmp_path / "rows"), files=2, seed=3, scale=8, edge_factor=8)
    result = mined(tmp_path / "rows", partitions=partitions, bounding=bounding)
    manifest, counts = result.manifest, result.manifest.counts

    assert set(manifest.versions) == {"edgemill", "dask", "distributed", "numba", "numpy", "pyarrow", "python"}
    assert manifest.settings["partitioning"] == {"count": partitions}
    assert manifest.settings["output"]["path"] == str(result.path)
    assert manifest.started < manifest.finished
    written = [(str(f), f.stat().st_size, pq.read_metadata(f).num_rows) for f in sorted((tmp_path / "rows").iterdir())]
    assert [(file.path, file.bytes, file.rows) for file in manifest.input.files] == written

    assert counts.rows == 2**8 * 8 == counts.edges + counts.duplicates + counts.self_loops
    assert (counts.edges, counts.vertices) == (result.edges.count_rows(), result.vertices.count_rows())
    assert counts.triangles is not None and 3 * counts.triangles == sum(runs.column(result, "support").values())
    lam = Counter(runs.column(result, "lambda").values())
    assert manifest.lam.histogram == sorted(lam.items())
    assert (manifest.lam.max, manifest.lam.sum) == (max(lam), sum(value * edges for value, edges in lam.items()))
    assert (manifest.converged, manifest.unsettled, manifest.lambda_high) == (True, 0, None)

    check_partitions(result)
    check_exchanges(result, method)
    for output in manifest.outputs:
        content = (result.path / output.path).read_bytes()
        assert (output.bytes, output.sha256) == (len(content), hashlib.sha256(content).hexdigest())
        assert output.rows == pq.read_metadata(result.path / output.path).num_rows
    files = {str(path.relative_to(result.path)) for path in result.path.rglob("*.parquet")}
    assert {output.path for output in manifest.outputs} == files
    check_log(result)


def check_partitions(result: Result) -> None:
    (record,) = result.manifest.partitions  # one worker here, so one group of shards
    owned = result.manifest.counts.edges
    if result.manifest.bounding.shards is not None:  # which have no edges without triangles
        owned = sum(1 for support in runs.column(result, "support").values() if support)
    assert (record.partition, record.owned, record.inner, record.cut) == (0, owned, owned, 0)


def check_exchanges(result: Result, method: str) -> None:
    manifest = result.manifest
    found, exchanges = manifest.bounding, manifest.exchanges
    assert (found.method, found.exchanges) == (method, len(exchanges))
    assert found.steps > 0 < found.evaluations
    if method == "peel":
        check_shards(result)
        return
    assert [record.exchange for record in exchanges] == list(range(1, len(exchanges) + 1))
    assert sum(record.evaluations for record in exchanges) == found.evaluations
    assert max(record.step for record in exchanges) <= found.steps
    assert all(record.settled + record.unsettled == manifest.counts.edges for record in exchanges)
    assert all((record.bytes > 0) is (record.messages > 0) for record in exchanges)
    assert all(record.seconds > 0 for record in exchanges)
    assert (exchanges[-1].unsettled, exchanges[-1].open_bands, exchanges[-1].messages) == (0, 0, 0)
    assert not any(record.messages for record in exchanges)  # one worker has nobody to tell


def check_shards(result: Result) -> None:
    """All meetings of groups are one exchange; one partition has none."""
    manifest = result.manifest
    shards, count = manifest.bounding.shards, manifest.settings["partitioning"]["count"]
    if count == 1:
        assert (shards, manifest.exchanges) == (None, [])
        return
    assert shards is not None
    (exchange,) = manifest.exchanges
    assert (shards.shards, shards.groups, shards.carrier) == (count, 1, "memory")
    assert shards.exchanges > shards.rounds > 0
    assert shards.busiest >= 1
    assert exchange.messages == shards.alarms + shards.reports + shards.grants > 0
    assert (exchange.bytes, exchange.evaluations) == (shards.bytes, manifest.bounding.evaluations)
    closed = sum(record.owned for record in manifest.partitions)
    assert (exchange.settled, exchange.unsettled, exchange.step) == (closed, 0, manifest.bounding.steps)
    assert manifest.bounding.evaluations == closed


def check_log(result: Result) -> None:
    lines = [json.loads(line) for line in (result.path / "log.jsonl").read_text().splitlines()]
    manifest = result.manifest
    assert {line["run"] for line in lines} == {manifest.run}
    times = [datetime.fromisoformat(line["time"]) for line in lines]
    assert times == sorted(times)
    assert (lines[0]["event"], lines[-1]["event"]) == ("run_started", "run_finished")
    assert lines[0]["settings"] == manifest.settings
    assert (lines[-1]["edges"], lines[-1]["lambda_max"]) == (manifest.counts.edges, manifest.lam.max)
    started, finished = (
        [line["stage"] for line in lines if line["event"] == f"stage_{end}"] for end in ("started", "finished")
    )
    assert started == finished == [stage.stage for stage in manifest.stages]
    assert [stage for stage in finished if stage != "compile"] == list(STAGES)
    assert [line["exchange"] for line in lines if line["event"] == "exchange"] == [
        record.exchange for record in manifest.exchanges
    ]
    done = {line["stage"]: (line["done"], line["tasks"]) for line in lines if line["event"] == "task_done"}
    assert all(tasks == of for tasks, of in done.values())


def test_every_task_is_of_a_stage(tmp_path: Path, mined: Mine, monkeypatch: pytest.MonkeyPatch) -> None:
    """So that no time but that of the driver is missing in the stages of the manifest."""
    running: list[str] = []
    tasks: list[tuple[str, list[str]]] = []
    stage, start = Events.stage, Engine.map

    @contextmanager
    def noted(self: Events, name: str, tasks: int) -> Iterator[Stage]:
        with stage(self, name, tasks) as found:
            running.append(name)
            yield found
            running.clear()

    def started(self: Engine, name: str, *arguments: Any, **named: Any) -> list[Future]:
        tasks.append((name, running.copy()))
        return start(self, name, *arguments, **named)

    monkeypatch.setattr(Events, "stage", noted)
    monkeypatch.setattr(Engine, "map", started)
    generate("rmat", str(tmp_path / "rows"), files=1, seed=3, scale=6, edge_factor=4)
    mined(tmp_path / "rows", partitions=2)
    assert {name for _, stages in tasks for name in stages} == set(STAGES)
    assert [name for name, stages in tasks if not stages] == []
