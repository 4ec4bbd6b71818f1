"""The rules and the dashboard of configs/monitoring in a real Prometheus, which scrapes a run."""

from __future__ import annotations

import json
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from edgemill.pipeline import InputError
from edgemill.pipeline.events import Events
from edgemill.pipeline.run.mining import mine_settings
from edgemill.pipeline.settings.sources import make_settings
from trials import Trials

HERE = Path(__file__).resolve().parent
ROWS = HERE.parent / "graphs" / "facebook_combined.parquet"
DASHBOARD = HERE.parent.parent / "configs" / "monitoring" / "dashboard.json"
ALERTS = {
    "EdgemillNightFailed",
    "EdgemillNightLate",
    "EdgemillNeverSucceeded",
    "EdgemillRunStalled",
    "EdgemillWorkerMemoryHigh",
}
PATIENCE_SECONDS = 120


@pytest.fixture
def prometheus(system: Callable[[str], Mapping[str, str]]) -> Mapping[str, str]:
    return system("prometheus")


def ask(prometheus: Mapping[str, str], path: str, **query: str) -> Any:
    """What Prometheus answers."""
    address = f"{prometheus['URL']}/api/v1/{path}?{urllib.parse.urlencode(query)}"
    with urllib.request.urlopen(address, timeout=30) as answer:
        found = json.load(answer)
    assert found["status"] == "success", found
    return found["data"]


def until(what: str, seen: Callable[[], Any]) -> Any:
    """The first answer that is not empty; fails after `PATIENCE_SECONDS`."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not (found := seen()):
        assert time.monotonic() < end, f"Prometheus has not shown {what}"
        time.sleep(0.2)
    return found


def value(prometheus: Mapping[str, str], query: str) -> list[Any]:
    """The samples of an instant query."""
    found: list[Any] = ask(prometheus, "query", query=query)["result"]
    return found


def expressions() -> list[str]:
    """All queries of the dashboard, with its variables as Grafana fills them in."""
    panels = json.loads(DASHBOARD.read_text())["panels"]
    texts = [target["expr"] for panel in panels for target in panel["targets"]]
    filled = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}
    for name, text in filled.items():
        texts = [expression.replace(name, text) for expression in texts]
    assert not any("$" in text for text in texts)
    return texts


def test_promtool(prometheus: Mapping[str, str], trials: Trials) -> None:
    for command in (["check", "rules", "rules.yaml"], ["test", "rules", "rules.test.yaml"]):
        done = subprocess.run(
            [prometheus["PROMTOOL"], *command], cwd=prometheus["RULES"], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert "SUCCESS" in done.stdout
    trials("Prometheus: the alerts, by promtool", "same", len(ALERTS))


class Scraped:
    """Points Prometheus at a run, and holds the run up after its third exchange until Prometheus has seen that."""

    def __init__(self, prometheus: Mapping[str, str]) -> None:
        self.prometheus = prometheus
        self.answers: dict[str, list[Any]] = {}

    def show(self, event: Mapping[str, Any]) -> None:
        if event["event"] == "serving":
            target = event["address"].removeprefix("http://").removesuffix("/metrics")
            Path(self.prometheus["TARGETS"]).write_text(json.dumps([{"targets": [target]}]))
        elif event["event"] == "exchange" and event["exchange"] == 4:  # which the metrics are told of after this
            until("the third exchange", lambda: value(self.prometheus, "edgemill_exchange == 3"))
            until("a rate", lambda: value(self.prometheus, "rate(edgemill_message_bytes_total[1m])"))
            self.answers = {text: value(self.prometheus, text) for text in expressions()}

    def close(self) -> None:
        pass


def test_a_run_and_the_nights_after_it(prometheus: Mapping[str, str], tmp_path: Path, trials: Trials) -> None:
    rows, out = tmp_path / "rows.parquet", tmp_path / "out"
    rows.write_bytes(ROWS.read_bytes())
    how: dict[str, Any] = {"device": "cpu", "method": "band", "metrics_port": 0, "overwrite": True}
    how["monitoring.textfile"] = f"{prometheus['TEXTFILES']}/edgemill.prom"
    settings, scraped = make_settings(rows, out, **how), Scraped(prometheus)
    with Events(scraped) as events:
        mine_settings(settings, client=None, events=events)
    absent = ("edgemill_last_", "edgemill_level", "edgemill_stage_tasks")  # an end, peeling, tasks that are counted
    of_runs = {text for text in scraped.answers if not any(name in text for name in absent)}
    assert len(of_runs) >= 7
    assert [text for text in of_runs if not scraped.answers[text]] == []
    trials("Prometheus: a run is scraped, and each query of the dashboard answered", "same")

    groups = ask(prometheus, "rules")["groups"]
    rules = {rule["name"]: rule for group in groups for rule in group["rules"]}
    assert rules.keys() == ALERTS
    assert {rule["health"] for rule in rules.values()} == {"ok"}
    until("the success", lambda: value(prometheus, "edgemill_last_success_time_seconds"))
    assert all(value(prometheus, text) for text in expressions() if "edgemill_last_" in text)
    failed = 'ALERTS{alertname="EdgemillNightFailed", alertstate="firing"}'
    assert not value(prometheus, failed)

    rows.write_bytes(b"PAR1 is not all that it takes")
    with Events() as events, pytest.raises(InputError):
        mine_settings(settings, client=None, events=events)
    (alert,) = until("the alert", lambda: value(prometheus, failed))
    assert alert["metric"]["output"] == str(out)
    trials("Prometheus: a night fails, and its alert fires", "same")

    rows.write_bytes(ROWS.read_bytes())
    with Events() as events:
        mine_settings(settings, client=None, events=events)
    until("the end of the alert", lambda: not value(prometheus, failed))
    trials("Prometheus: the night is repeated, and its alert ends", "same")
