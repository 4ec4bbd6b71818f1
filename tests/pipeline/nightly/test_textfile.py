"""The textfile for node_exporter after runs with different outcomes."""

from __future__ import annotations

import sys
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest
from distributed import Client
from prometheus_client.parser import text_string_to_metric_families

import runs
from edgemill.pipeline import InputError, NotConverged, UsageError, mine
from edgemill.pipeline.monitor import textfile
from edgemill.pipeline.settings.sources import make_settings

CLIQUES = [clique for first in range(0, 24, 3) for clique in combinations(range(first, first + 5), 2)]


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", CLIQUES)


@pytest.fixture
def prom(tmp_path: Path) -> Path:
    (tmp_path / "collector").mkdir()
    return tmp_path / "collector" / "edgemill.prom"


def told(prom: Path) -> dict[str, float]:
    """The values in the file; all samples have one output."""
    samples = [s for family in text_string_to_metric_families(prom.read_text()) for s in family.samples]
    assert len({sample.labels["output"] for sample in samples}) == 1
    return {sample.name: sample.value for sample in samples if sample.name != textfile.FAILURE}


def run(rows: Path, out: Path, client: Client, prom: Path, **settings: Any) -> None:
    mine(rows, out, client=client, device="cpu", textfile=prom, **settings)


def test_success_failure_and_success(rows: Path, prom: Path, tmp_path: Path, client: Client) -> None:
    run(rows, tmp_path / "out", client, prom)
    first = told(prom)
    assert first.keys() == textfile.METRICS.keys()
    assert first["edgemill_last_run_exit_code"] == 0
    assert first["edgemill_last_run_start_time_seconds"] < first["edgemill_last_run_end_time_seconds"]
    assert first["edgemill_last_success_time_seconds"] == first["edgemill_last_run_end_time_seconds"]
    assert f'output="{tmp_path / "out"}"' in prom.read_text()
    assert prom.stat().st_mode & 0o777 == 0o644
    whole = rows.read_bytes()
    rows.write_bytes(b"PAR1 is not all that it takes")
    with pytest.raises(InputError):
        run(rows, tmp_path / "out", client, prom, overwrite=True)
    second = told(prom)
    assert second["edgemill_last_run_exit_code"] == InputError.exit_code
    assert second["edgemill_last_run_end_time_seconds"] > first["edgemill_last_run_end_time_seconds"]
    assert second["edgemill_last_success_time_seconds"] == first["edgemill_last_success_time_seconds"]
    rows.write_bytes(whole)
    run(rows, tmp_path / "out", client, prom, overwrite=True)
    assert told(prom)["edgemill_last_success_time_seconds"] > first["edgemill_last_success_time_seconds"]
    assert [path.name for path in prom.parent.iterdir()] == [prom.name]


def test_nights_are_one_output(rows: Path, prom: Path, tmp_path: Path, client: Client) -> None:
    for day in ("2026-11-19", "2026-11-20"):
        run(rows, tmp_path / "{date}", client, prom, date=day)
        assert f'output="{tmp_path / "{date}"}"' in prom.read_text()
        told(prom)


def test_before_the_first_success(tmp_path: Path, prom: Path, client: Client) -> None:
    prom.write_text("what\nis this")
    with pytest.raises(InputError):
        run(tmp_path / "nothing", tmp_path / "out", client, prom)
    assert "edgemill_last_success_time_seconds" not in told(prom)
    assert told(prom)["edgemill_last_run_exit_code"] == InputError.exit_code


def test_a_limit_is_no_success(rows: Path, prom: Path, tmp_path: Path, client: Client) -> None:
    run(rows, tmp_path / "out", client, prom, method="band", max_exchanges=1)
    found = told(prom)
    assert found["edgemill_last_run_exit_code"] == NotConverged.exit_code
    assert "edgemill_last_success_time_seconds" not in found


@pytest.mark.parametrize("name", ["edgemill.txt", "s3://bucket/edgemill.prom"])
def test_names(name: str) -> None:
    with pytest.raises(UsageError, match=r"monitoring\.textfile: must "):
        make_settings("edges", "out", monitoring={"textfile": name})


def test_where_no_file_can_be(rows: Path, prom: Path, tmp_path: Path, client: Client) -> None:
    with pytest.raises(UsageError, match=r"monitoring.textfile .*/none .*a writable folder"):
        run(rows, tmp_path / "out", client, tmp_path / "none" / "edgemill.prom")
    prom.mkdir()
    with pytest.raises(UsageError, match=r"exists .*not a file"):
        run(rows, tmp_path / "out", client, prom)
    assert not (tmp_path / "out").exists()


def test_a_file_that_cannot_be_written_fails_no_run(
    rows: Path, prom: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    events: list[str] = []

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(textfile, "_write", full)
    monkeypatch.setattr("edgemill.pipeline.events.Events.emit", lambda self, event, /, **more: events.append(event))
    run(rows, tmp_path / "out", client, prom)
    assert events[-1] == "textfile_failed"
    assert (tmp_path / "out" / "manifest.json").exists()


def test_without_the_extra(
    rows: Path, prom: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(UsageError, match=r"monitoring.textfile.*install"):
        run(rows, tmp_path / "out", client, prom)
