"""Alerts and dashboard of configs/monitoring: every metric that they ask for is one of ours."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from itertools import combinations
from pathlib import Path
from typing import Any

import yaml
from prometheus_client import CollectorRegistry, ProcessCollector, generate_latest
from prometheus_client.parser import text_string_to_metric_families

from edgemill.pipeline.monitor.metrics import Metrics
from edgemill.pipeline.monitor.textfile import FAILURE, METRICS

FOLDER = Path(__file__).resolve().parents[2] / "configs" / "monitoring"
FIGURES = ("exchange", "step", "open_bands", "settled", "messages", "bytes", "evaluations", "seconds")
EVENTS: list[dict[str, Any]] = [
    {"event": "stage_started", "stage": "read", "tasks": 1},
    {"event": "planned", "partitions": 2},
    {"event": "level", "level": 4, "unsettled": 3},
    {"event": "exchange", **dict.fromkeys(FIGURES, 1)},
]
WORKERS = {f"edgemill_worker_{name}_bytes" for name in ("memory", "memory_limit", "spilled")}
"""Samples of a cluster, which is not there when names are looked at."""


def samples() -> dict[str, set[str]]:
    """Every sample that a scrape, or node_exporter, can give, and the names of its labels."""
    metrics, registry = Metrics("it", datetime.now(UTC), "out"), CollectorRegistry()
    for event in EVENTS:
        metrics.show(event)
    registry.register(metrics)
    registry.register(ProcessCollector(registry=None))
    families = list(text_string_to_metric_families(generate_latest(registry).decode()))
    names = {family.name for family in families}
    assert names >= WORKERS
    found = {sample.name: set(sample.labels) for family in families for sample in family.samples}
    of_failures = {FAILURE: {"output", "exit_code", "error", "log"}}
    return found | of_failures | {name: {"worker"} for name in WORKERS} | {name: {"output"} for name in METRICS}


def asked(expression: str) -> set[str]:
    """Names of the metrics in PromQL."""
    return set(re.findall(r"\b(?:edgemill|process)_\w+(?=[^\w=\"])", f"{expression} "))


def of_labels(expression: str) -> set[str]:
    """Names of the labels that PromQL selects by."""
    return {
        name for inner in re.findall(r"\{([^{}]*)\}", expression) for name in re.findall(r"(\w+)\s*[=!]~?\"?", inner)
    }


def rules() -> list[dict[str, Any]]:
    found = yaml.safe_load((FOLDER / "rules.yaml").read_text())
    return [rule for group in found["groups"] for rule in group["rules"]]


def dashboard() -> dict[str, Any]:
    found: dict[str, Any] = json.loads((FOLDER / "dashboard.json").read_text())
    return found


def test_names_that_are_asked_for() -> None:
    known = samples()
    found = dashboard()
    texts = [rule["expr"] for rule in rules()]
    texts += [target["expr"] for panel in found["panels"] for target in panel["targets"]]
    texts += [variable["definition"] for variable in found["templating"]["list"] if "definition" in variable]
    assert len(texts) >= 20
    for text in texts:
        names = asked(text)
        assert names, text
        assert names <= known.keys(), text
        labels = {"job", "instance"}.union(*(known[name] for name in names))
        assert of_labels(text) <= labels, text


def test_a_name_that_is_not_there_would_be_noticed() -> None:
    text = 'rate(edgemill_exchanges_total{job="x"}[5m]) > 0 unless on (job) edgemill_run_state{edgemill_run_state="a"}'
    assert asked(text) == {"edgemill_exchanges_total", "edgemill_run_state"}
    assert "edgemill_exchanges_total" not in samples()


def test_expected_annotations_are_those_of_the_rules() -> None:
    """Prometheus itself compares them, but not in CI (`make systems`)."""
    expected = yaml.safe_load((FOLDER.parents[1] / "tests" / "systems" / "prometheus" / "rules.test.yaml").read_text())
    texts = {rule["alert"]: rule["annotations"] for rule in rules()}
    alerts = [
        (test["alertname"], alert["exp_annotations"])
        for of_rules in expected["tests"]
        for test in of_rules["alert_rule_test"]
        for alert in test["exp_alerts"]
    ]
    assert {name for name, _ in alerts} == texts.keys()
    for name, told in alerts:
        assert told.keys() == texts[name].keys()
        for key, text in texts[name].items():
            pattern = ".*".join(map(re.escape, re.split(r"\{\{.*?\}\}", text)))
            assert re.fullmatch(pattern, told[key]), (name, key)


def test_what_alerts_tell() -> None:
    known = samples()
    for rule in rules():
        assert re.fullmatch("Edgemill[A-Za-z]+", rule["alert"])
        assert rule["labels"]["severity"] in ("warning", "critical")
        told = set(re.findall(r"\$labels\.(\w+)", " ".join(rule["annotations"].values())))
        assert told <= {"job", "instance"}.union(*(known[name] for name in asked(rule["expr"])))


def test_the_dashboard_is_what_grafana_takes() -> None:
    """Panels with ids of their own that do not overlap, and data sources that the user picks."""
    found = dashboard()
    assert found["uid"] == "edgemill"
    assert [variable["name"] for variable in found["templating"]["list"]] == ["datasource", "job", "instance"]
    panels = found["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels) >= 10
    for panel in panels:
        assert panel["gridPos"]["x"] + panel["gridPos"]["w"] <= 24
        for asks in (panel, *panel["targets"]):
            assert asks["datasource"] == {"type": "prometheus", "uid": "${datasource}"}
        assert len({target["refId"] for target in panel["targets"]}) == len(panel["targets"])
    for one, other in combinations([panel["gridPos"] for panel in panels], 2):
        beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        assert beside or one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
