"""Object stores that do not obey conditional writes, and where a failed run's log is when its store is gone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations, count
from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
from edgemill.pipeline import OutputLocked, Result, UsageError, mine
from edgemill.pipeline.output.lock import LOCK_NAME, StoreLock
from edgemill.pipeline.output.manifest import MANIFEST_NAME
from edgemill.pipeline.output.staging import FAILED_LOG
from edgemill.tasks.errors import StoreLost
from edgemill.tasks.storage.folders import Folder
from s3_servers import Treatment, s3_server

_numbers = count()
CLIQUE = [*combinations(range(6), 2)]


@pytest.fixture(
    params=["ignore", "501 Not Implemented", pytest.param("400 Bad Request", marks=pytest.mark.slow)], scope="module"
)
def s3(request: pytest.FixtureRequest) -> Iterator[dict[str, Any]]:
    """A server that does not obey conditional writes."""
    treatment: Treatment = request.param
    with s3_server(treatment) as options:
        yield options


@pytest.fixture
def out(s3: dict[str, Any]) -> Folder:
    return Folder(f"s3://bucket/out {next(_numbers)}", s3)


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return runs.write_rows(tmp_path / "rows.parquet", CLIQUE)


def run(rows: Path, out: Folder, client: Client, **settings: Any) -> Result:
    how: dict[str, Any] = {"device": "cpu", "report": False, "output.storage_options": dict(out.options)}
    return mine(rows, out.url, client=client, **(how | settings))


def test_such_a_store_is_refused(rows: Path, out: Folder, client: Client) -> None:
    said = r"^output s3://bucket/out \d+: the store .*conditional write.*give single_writer=True if"
    with pytest.raises(UsageError, match=said) as caught:
        run(rows, out, client)
    assert caught.value.exit_code == 2
    assert out.names() == ["failed.log.jsonl"]


def test_the_probe_leaves_the_lock_of_another_run(out: Folder) -> None:
    first = StoreLock(out, "first", single_writer=True)
    first.take()
    for single_writer in (False, True):
        with pytest.raises(OutputLocked):
            StoreLock(out, "second", single_writer=single_writer).take()
        assert first.is_held()
    first.release()
    assert out.names() == []


def test_a_single_writer_is_warned(rows: Path, out: Folder, client: Client, capsys: pytest.CaptureFixture[str]) -> None:
    result = run(rows, out, client, **{"output.single_writer": True})
    assert result.manifest.lam.max == 4
    assert result.manifest.settings["output"]["single_writer"] is True
    log = out.read(f"edgemill-{result.manifest.run}/log.jsonl") or b""
    (told,) = [event for event in map(json.loads, log.splitlines()) if event["event"] == "weak_lock"]
    assert "conditional write" in told["reason"]
    with pytest.raises(UsageError, match="choose another"):
        run(rows, out, client, **{"output.single_writer": True, "partitions": 2})


def test_a_single_writer_replaces_no_result_that_came_meanwhile(out: Folder) -> None:
    lock = StoreLock(out, "it", single_writer=True)
    lock.take()
    assert lock.weakness is not None
    out.write(MANIFEST_NAME, b"of another")
    assert not lock.create(MANIFEST_NAME, b"own")
    assert out.read(MANIFEST_NAME) == b"of another"
    assert lock.create("other", b"own")
    lock.release()


def test_a_store_that_obeys_is_not_weak() -> None:
    with s3_server() as options:
        for place in (Folder("s3://bucket/obeys", options), Folder("memory://obeys")):
            lock = StoreLock(place, "it", single_writer=True)
            lock.take()
            assert (lock.weakness, lock.is_held()) == (None, True)
            assert not lock.create(LOCK_NAME, b"another")
            lock.release()
            assert place.names() == []


@pytest.mark.parametrize("writable", [True, False])
def test_the_log_of_a_run_whose_store_is_gone_stays_here(
    rows: Path, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, writable: bool
) -> None:
    """In the current directory, or in that of temporary files where the former takes none."""
    out = Folder(f"memory://gone/{next(_numbers)}")
    here, temporary = tmp_path / "here", tmp_path / "tmp"
    here.mkdir()
    temporary.mkdir()
    monkeypatch.chdir(here)
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    if not writable:
        here.rmdir()
    write = Folder.write

    def gone(place: Folder, name: str, content: bytes) -> None:
        if name.endswith("log.jsonl"):
            raise StoreLost(f"cannot write {place}/{name}: Connection refused")
        write(place, name, content)

    monkeypatch.setattr(Folder, "write", gone)
    with pytest.raises(StoreLost, match="Connection refused") as caught:
        run(rows, out, client)
    folder = here if writable else temporary
    (log,) = folder.iterdir()
    assert any(str(log) in note for note in caught.value.__notes__)
    assert log.name.endswith(f".{FAILED_LOG}")
    events = [json.loads(line) for line in log.read_text().splitlines()]
    assert log.name == f"edgemill-{events[-1]['run']}.{FAILED_LOG}"
    assert (events[0]["event"], events[-1]["event"], events[-1]["exit_code"]) == ("run_started", "run_failed", 4)
    assert log.stat().st_mode & 0o777 == 0o600
    assert out.names() == []
