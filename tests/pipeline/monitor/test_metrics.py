"""Metrics of a run as Prometheus scrapes them during the run, and the use of the port."""

from __future__ import annotations

import re
import sys
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import combinations
from pathlib import Path
from socket import create_server
from typing import Any

import psutil
import pytest
import yaml
from distributed import Client
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as open_metrics
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.samples import Sample

import runs
from edgemill.pipeline import InputError, UsageError
from edgemill.pipeline.events import Events
from edgemill.pipeline.monitor import textfile
from edgemill.pipeline.monitor.metrics import Metrics
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.sources import make_settings
from in_process import call

CLIQUES = [clique for first in range(0, 24, 3) for clique in combinations(range(first, first + 5 + first // 4), 2)]
HOW: dict[str, Any] = {"device": "cpu", "output.report": False, "metrics_port": 0}
BANDS: dict[str, Any] = {"method": "band"}
Scraped = dict[str, list[Sample]]


class Hook:
    """Calls `at` with each event before the metrics receive it, and knows their address."""

    def __init__(self, at: Callable[[Hook, Mapping[str, Any]], None]) -> None:
        self.at, self.address = at, ""

    def show(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "serving" and event["what"] == "metrics":
            self.address = event["address"]
        self.at(self, event)

    def close(self) -> None:
        pass

    def scrape(self) -> Scraped:
        return parsed(self.get("text/plain"))

    def get(self, kind: str) -> str:
        request = urllib.request.Request(self.address, headers={"Accept": f"{kind};version=1.0.0"})
        with urllib.request.urlopen(request, timeout=30) as answer:
            assert answer.headers["Content-Type"].startswith(f"{kind}; version=")
            return str(answer.read().decode())

    @property
    def port(self) -> int:
        return int(self.address.rpartition(":")[2].removesuffix("/metrics"))


def parsed(text: str) -> Scraped:
    found: Scraped = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        assert family.type != "unknown"
        for sample in family.samples:
            found.setdefault(sample.name, []).append(sample)
    return found


def of(metrics: Metrics) -> Scraped:
    registry = CollectorRegistry()
    registry.register(metrics)
    return parsed(generate_latest(registry).decode())


def value(found: Scraped, name: str, **labels: str) -> float:
    (sample,) = (sample for sample in found[name] if labels.items() <= sample.labels.items())
    return sample.value


def listening() -> set[tuple[str, int]]:
    """Addresses on which this process accepts connections."""
    found = psutil.Process().net_connections("inet")
    return {(own.laddr.ip, own.laddr.port) for own in found if own.status == psutil.CONN_LISTEN}


def metrics() -> Metrics:
    return Metrics("the run", datetime(2026, 11, 1, tzinfo=UTC), "out")


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", CLIQUES)


def test_scraped_during_a_run(rows: Path, tmp_path: Path, client: Client) -> None:
    scraped: dict[str, Scraped] = {}
    exchanges: list[Mapping[str, Any]] = []

    def at(hook: Hook, event: Mapping[str, Any]) -> None:
        if event["event"] == "exchange":
            if len(exchanges) == 3:
                scraped["bound"] = hook.scrape()
            exchanges.append(event)
        elif event["event"] == "stage_started" and event["stage"] in ("partition", "publish"):
            scraped[event["stage"]] = hook.scrape()

    hook, out = Hook(at), tmp_path / "out"
    settings = make_settings(rows, out, **HOW, **BANDS)
    with Events(hook) as events:
        result = mine_settings(settings, client=client, events=events)
        last = hook.scrape()  # the run is over, its events are not
        strict = list(open_metrics(hook.get("application/openmetrics-text")))  # the format that Prometheus prefers
    assert {sample.name for family in strict for sample in family.samples} == last.keys()
    own = {"run_id": events.run_id, "version": version("edgemill"), "output": str(out)}
    bound = scraped["bound"]
    assert [sample.labels for sample in bound["edgemill_run_info"]] == [own]
    assert value(bound, "edgemill_run_start_time_seconds") == pytest.approx(events.started.timestamp())
    assert value(bound, "edgemill_run_state", edgemill_run_state="running") == 1
    assert "edgemill_run_end_time_seconds" not in bound
    assert value(bound, "edgemill_partitions") == 1
    third = exchanges[2]
    assert value(bound, "edgemill_exchange") == third["exchange"] == 3
    assert value(bound, "edgemill_step") == third["step"]
    assert value(bound, "edgemill_unsettled_edges") == third["unsettled"] > 0
    assert value(bound, "edgemill_settled_edges") == third["settled"]
    for name, metric in {"messages": "messages", "bytes": "message_bytes", "evaluations": "evaluations"}.items():
        assert value(bound, f"edgemill_{metric}_total") == sum(event[name] for event in exchanges[:3])
        assert value(last, f"edgemill_{metric}_total") == sum(getattr(e, name) for e in result.manifest.exchanges)
    assert value(bound, "edgemill_evaluations_total") > 0
    assert value(bound, "edgemill_exchange_seconds_total") > 0
    assert {sample.labels["stage"]: sample.value for sample in bound["edgemill_stage_running"]} == {
        "compile": 0, "read": 0, "number": 0, "partition": 0, "triangulate": 0, "bound": 1
    }  # fmt: skip
    assert value(bound, "edgemill_stage_tasks", stage="triangulate") == 2
    assert value(bound, "edgemill_stage_tasks_done", stage="triangulate") == 2
    seconds = {stage.stage: stage.seconds for stage in result.manifest.stages}
    assert value(bound, "edgemill_stage_seconds_total", stage="read") == pytest.approx(seconds["read"])
    assert value(bound, "edgemill_stage_start_time_seconds", stage="bound") > events.started.timestamp()
    (worker,) = bound["edgemill_worker_memory_bytes"]
    assert worker.value > 50e6
    assert bound["edgemill_worker_memory_limit_bytes"][0].labels == worker.labels
    assert value(bound, "edgemill_worker_spilled_bytes") == 0
    assert value(bound, "process_resident_memory_bytes") > 50e6
    assert "edgemill_unsettled_edges" not in scraped["partition"]  # not known yet is not 0
    assert value(scraped["publish"], "edgemill_unsettled_edges") == 0
    assert value(last, "edgemill_run_state", edgemill_run_state="finished") == 1
    assert value(last, "edgemill_run_state", edgemill_run_state="running") == 0
    assert value(last, "edgemill_run_end_time_seconds") >= events.started.timestamp()
    assert not any(sample.value for sample in last["edgemill_stage_running"])
    assert "edgemill_worker_memory_bytes" not in last  # the run has released the cluster
    create_server(("127.0.0.1", hook.port)).close()  # the port is free
    runs.assert_nothing_left(client)


def test_a_run_that_fails(rows: Path, tmp_path: Path, client: Client) -> None:
    hook = Hook(lambda hook, event: None)
    runs.write_rows(rows, [(1, 2), (2, None)])
    with Events(hook) as events:
        with pytest.raises(InputError):
            mine_settings(make_settings(rows, tmp_path / "out", **HOW), client=client, events=events)
        last = hook.scrape()
    assert value(last, "edgemill_run_state", edgemill_run_state="failed") == 1
    assert value(last, "edgemill_run_state", edgemill_run_state="finished") == 0
    create_server(("127.0.0.1", hook.port)).close()


def test_a_stage_that_is_begun_again_and_one_within_another() -> None:
    took_in = metrics()
    for stage, tasks in (("bound", 0), ("keep", 4)):
        took_in.show({"event": "stage_started", "stage": stage, "tasks": tasks})
    took_in.show({"event": "task_done", "stage": "keep", "done": 3, "tasks": 4})
    found = of(took_in)
    assert [sample.value for sample in found["edgemill_stage_running"]] == [1, 1]
    assert value(found, "edgemill_stage_tasks_done", stage="keep") == 3
    took_in.show({"event": "stage_finished", "stage": "keep", "seconds": 2.5})
    took_in.show({"event": "kept", "exchange": 7})
    for _ in range(2):
        took_in.show({"event": "stage_started", "stage": "keep", "tasks": 4})
        took_in.show({"event": "stage_finished", "stage": "keep", "seconds": 1})
    found = of(took_in)
    assert value(found, "edgemill_stage_seconds_total", stage="keep") == 4.5
    assert value(found, "edgemill_checkpoints_total") == 1
    took_in.show({"event": "run_failed", "error": "", "exit_code": 4})
    assert not any(sample.value for sample in of(took_in)["edgemill_stage_running"])


def test_events_of_other_things_by_the_same_names() -> None:
    """Log events of libraries have a field `level`, too."""
    took_in = metrics()
    took_in.show({"event": "level", "level": 4, "unsettled": 3})
    took_in.show({"event": "log", "logger": "py.warnings", "level": "WARNING", "message": "port 8787 is taken"})
    took_in.show({"event": "kept", "exchange": 7})
    found = of(took_in)
    assert value(found, "edgemill_level") == 4
    assert "edgemill_exchange" not in found


def test_names_are_as_documented(pytestconfig: pytest.Config) -> None:
    """Names follow the conventions of Prometheus: base units, and `_total` for counters only."""
    took_in = metrics()
    took_in.show({"event": "stage_started", "stage": "read", "tasks": 1})
    took_in.show({"event": "planned", "partitions": 2})
    took_in.show({"event": "level", "level": 4, "unsettled": 3})
    figures = dict.fromkeys(("exchange", "step", "open_bands", "settled", "messages", "bytes", "evaluations"), 1)
    took_in.show({"event": "exchange", "unsettled": 2, "seconds": 0.5, **figures})
    took_in.show({"event": "run_failed", "error": "no room", "exit_code": 7})
    registry = CollectorRegistry()
    registry.register(took_in)
    families = list(registry.collect())
    [why] = [s.labels for family in families for s in family.samples if s.name == "edgemill_run_failure_info"]
    assert why == {"error": "no room", "exit_code": "7"}
    page = (pytestconfig.rootpath / "docs/monitoring.md").read_text()
    documented = dict(re.findall(r"^\| `(edgemill_\w+)` \| (\w+) \|", page, re.MULTILINE))
    suffix = {"counter": "_total", "info": "_info"}
    names = {family.name + suffix.get(family.type, ""): family.type for family in families}
    assert documented == names | dict.fromkeys([*textfile.METRICS, textfile.FAILURE], "gauge")
    for block in re.findall(r"```yaml\n(.*?)```", page, re.DOTALL):
        assert yaml.safe_load(block)
    asked = set(re.findall(r"edgemill_\w+", page))
    assert asked <= documented.keys()


def test_a_port_that_is_taken(rows: Path, tmp_path: Path) -> None:
    with closing(create_server(("127.0.0.1", 0))) as taken:
        port = taken.getsockname()[1]
        command = ["run", "--input", str(rows), "--output", str(tmp_path / "out"), "--metrics-port", str(port)]
        done = call(*command)
    assert done.exit_code == 2
    assert done.stderr.splitlines()[0] == (
        f"Error: --metrics-port {port} cannot be bound on 127.0.0.1 (--set monitoring.metrics_host): "
        "Address already in use; choose another, or 0 for a free one"
    )
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.failed.log.jsonl", "rows.parquet"]


def test_an_address_of_nobody(rows: Path, tmp_path: Path, client: Client) -> None:
    settings = make_settings(rows, tmp_path / "out", **HOW, **{"monitoring.metrics_host": "no.such.host.invalid"})
    with Events() as events, pytest.raises(UsageError, match=r"0.*no\.such\.host\.invalid"):
        mine_settings(settings, client=client, events=events)


def test_other_addresses_where_they_are_asked_for() -> None:
    everywhere, here, before = metrics(), metrics(), listening()
    try:
        assert everywhere.serve("0.0.0.0", 0).startswith("http://0.0.0.0:")
        assert here.serve("127.0.0.1", 0).startswith("http://127.0.0.1:")
        opened = listening() - before
    finally:
        everywhere.close()
        here.close()
    assert sorted(ip for ip, _ in opened) == ["0.0.0.0", "127.0.0.1"]
    assert listening() == before


def test_without_the_extra(rows: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "edgemill.pipeline.monitor.metrics")
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with Events() as events, pytest.raises(UsageError, match=r"install edgemill\[metrics\]"):
        mine_settings(make_settings(rows, tmp_path / "out", **HOW), client=client, events=events)


@pytest.mark.parametrize("port", [-1, 65536, "9464"])
def test_ports_are_numbers(port: object) -> None:
    with pytest.raises(UsageError, match=r"monitoring\.metrics_port.*must"):
        make_settings("edges", "out", metrics_port=port)
