"""A run that ends during bounding: the next run resumes from its checkpoint, or reports why it does not."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import runs
from edgemill.pipeline import ClusterLost, Result, UsageError, mine
from edgemill.pipeline.bounding.on_copies import OnCopies
from edgemill.pipeline.checkpoint.checkpoint import Checkpoint, file_identities
from edgemill.pipeline.opening.existing_result import fingerprint
from edgemill.pipeline.output.checkpoint_files import opened
from edgemill.pipeline.settings.models import CheckpointSettings
from edgemill.tasks.generate import generate
from edgemill.tasks.inputs.open_source import open_source

ALWAYS = {"every_seconds": 0.0}


def write_rows(folder: Path) -> Path:
    generate("rmat", str(folder), files=3, seed=4, scale=9, edge_factor=8)
    return folder


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    return write_rows(tmp_path / "rows")


def ended(monkeypatch: pytest.MonkeyPatch, rows: Path, out: Path, **settings: Any) -> ClusterLost:
    """A run that loses its cluster when bounding starts."""

    def lose(*_: object) -> None:
        raise ClusterLost("planted")

    with monkeypatch.context() as patch:
        patch.setattr("edgemill.pipeline.run.tables.bound", lose)
        with pytest.raises(ClusterLost, match="planted") as caught:
            again(rows, out, **({"checkpoint": ALWAYS} | settings))
    return caught.value


def place(out: Path) -> Path:
    return out.with_name(f".{out.name}.edgemill.checkpoint")


def stages(result: Result) -> list[str]:
    return [stage.stage for stage in result.manifest.stages]


def refusals(result: Result) -> list[str]:
    return [line["reason"] for line in logged(result, "checkpoint_refused")]


def logged(result: Result, event: str) -> list[dict[str, Any]]:
    lines = map(json.loads, (result.path / "log.jsonl").read_text().splitlines())
    return [line for line in lines if line["event"] == event]


def tables(result: Result) -> list[pa.Table]:
    return [result.edges.to_table(), result.vertices.to_table()]


def again(rows: Path, out: Path, **settings: Any) -> Result:
    given: dict[str, Any] = {"device": "cpu", "output.report": False}
    if not settings.keys() & {"partitioning", "method"}:
        given["partitions"] = 3
    return mine(rows, out, **(given | settings))


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Result:
    """The result of a run without a fault."""
    folder = tmp_path_factory.mktemp("plain")
    return again(write_rows(folder / "rows"), folder / "out")


def test_the_next_run_goes_on(monkeypatch: pytest.MonkeyPatch, rows: Path, plain: Result, tmp_path: Path) -> None:
    error = ended(monkeypatch, rows, tmp_path / "out")
    assert f"the checkpoint is in {place(tmp_path / 'out')}: the same command resumes from it" in (error.__notes__)
    result = again(rows, tmp_path / "out")
    assert stages(result) == ["compile", "restore", "bound", "extract", "publish"]
    assert tables(result) == tables(plain)
    assert result.manifest.counts == plain.manifest.counts
    assert result.manifest.partitions == plain.manifest.partitions
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


@pytest.mark.slow
def test_string_ids_and_a_place_of_its_own(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    named = pa.concat_tables([pq.read_table(path) for path in sorted(rows.glob("*.parquet"))])
    names = {name: pc.binary_join_element_wise("é", named[name].cast(pa.string()), "") for name in named.column_names}
    pq.write_table(pa.table(names), tmp_path / "named.parquet")
    kept = {"path": f"file://{tmp_path}/scratch/", **ALWAYS}
    ended(monkeypatch, tmp_path / "named.parquet", tmp_path / "out", checkpoint=kept)
    ended(monkeypatch, tmp_path / "named.parquet", tmp_path / "other", checkpoint=kept)
    assert len(list((tmp_path / "scratch").iterdir())) == 2
    result = again(tmp_path / "named.parquet", tmp_path / "out", checkpoint=kept)
    assert "restore" in stages(result)
    assert tables(result) == tables(again(tmp_path / "named.parquet", tmp_path / "plain"))
    assert len(list((tmp_path / "scratch").iterdir())) == 1


@pytest.mark.slow
def test_worker_processes(monkeypatch: pytest.MonkeyPatch, rows: Path, plain: Result, tmp_path: Path) -> None:
    with runs.two_processes() as client:
        ended(monkeypatch, rows, tmp_path / "out", client=client)
        result = again(rows, tmp_path / "out", client=client)
    assert "restore" in stages(result)
    assert tables(result) == tables(plain)


@pytest.mark.slow
def test_ended_twice(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    for _ in range(2):
        ended(monkeypatch, rows, tmp_path / "out")
        assert len(list(place(tmp_path / "out").iterdir())) == 2  # the index, and one run's files
    assert "restore" in stages(again(rows, tmp_path / "out"))


def test_fresh(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    ended(monkeypatch, rows, tmp_path / "out")
    result = again(rows, tmp_path / "out", fresh=True)
    assert "restore" not in stages(result)
    assert refusals(result) == []
    assert not place(tmp_path / "out").exists()


def test_what_was_quick_is_not_kept(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    for after in (300.0, None):
        error = ended(monkeypatch, rows, tmp_path / "out", checkpoint={"every_seconds": after})
        assert not place(tmp_path / "out").exists()
        assert not any("is kept" in note for note in error.__notes__)


@given(
    every=st.floats(0.01, 1000),
    stopped=st.floats(0, 20),
    costs=st.lists(st.floats(0.01, 50), min_size=1, max_size=20),
)
def test_checkpoints_take_a_tenth_of_the_time_at_most(every: float, stopped: float, costs: list[float]) -> None:
    """Whatever one takes, if the next one of the same kind takes no longer. It is told once."""
    now, events = 0.0, Mock()
    with patch("edgemill.pipeline.checkpoint.checkpoint.time", Mock(monotonic=lambda: now)):
        checkpoint = Checkpoint(CheckpointSettings(every_seconds=every), {}, Path("out"))
        spent = 0.0
        for number, cost in enumerate(sorted(costs, reverse=True)):
            left = checkpoint.seconds_left(events, "progress", stopped)
            assert left is not None
            assert checkpoint.due(events, "progress", stopped) == (left <= 0)
            now += max(0.0, left) + 1e-6
            assert checkpoint.due(events, "progress", stopped)
            began = now
            with checkpoint.saving("progress", stopped):
                now += cost
            now += stopped
            spent += cost + stopped
            assert number == 0 or spent <= 0.1 * began + 1e-6
    told = [call for call in events.emit.call_args_list if call.args == ("checkpoints_rarer",)]
    assert len(told) <= 1


def test_a_first_checkpoint_that_is_too_large_waits(tmp_path: Path) -> None:
    """Until a tenth of the time has passed that it is expected to take."""
    now = 0.0
    with patch("edgemill.pipeline.checkpoint.checkpoint.time", Mock(monotonic=lambda: now)):
        settings = CheckpointSettings(every_seconds=3)
        checkpoint = Checkpoint(settings, {}, tmp_path / "out", expected_bytes=4 * 10**9, workers=2)
        assert checkpoint.seconds_left(Mock(), "graph") == pytest.approx(100)
        assert Checkpoint(settings, {}, tmp_path / "out").seconds_left(Mock(), "graph") == pytest.approx(3)
        at_each_chance = CheckpointSettings(every_seconds=0)
        assert Checkpoint(at_each_chance, {}, tmp_path / "out", 10**12).due(Mock(), "graph")


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_search_that_stops_slowly_stops_rarely(rows: Path, tmp_path: Path, partitions: int) -> None:
    """`checkpoint.every_seconds` alone would stop it after each level."""
    kept = {}
    for every in (0.0, 1e-6):
        result = again(rows, tmp_path / f"{every}", partitions=partitions, checkpoint={"every_seconds": every})
        kept[every] = len(logged(result, "kept"))
        assert len(logged(result, "checkpoints_rarer")) == (every > 0)
    assert kept[1e-6] < kept[0.0] / 2


def flip(path: Path) -> None:
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    path.write_bytes(content)


def index_of(path: Path) -> dict[str, Any]:
    """The content of an index, below the line with its checksum."""
    found: dict[str, Any] = json.loads(path.read_text().partition("\n")[2])
    return found


def change_index(path: Path, **other: Any) -> None:
    """Change an index and its checksum."""
    text = json.dumps(index_of(path) | other)
    path.write_text(f"{sha256(text.encode()).hexdigest()}\n{text}")


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda kept: flip(next(kept.rglob("subgraphs-0.zip"))), "is not what was written: it was cut off or changed"),
        pytest.param(
            lambda kept: next(kept.rglob("edges-0.zip")).unlink(),
            "cannot be read: No such file or directory",
            marks=pytest.mark.slow,
        ),
        pytest.param(lambda kept: (kept / "graph.json").write_text("{"), "is damaged", marks=pytest.mark.slow),
        pytest.param(lambda kept: (kept / "graph.json").write_text("{}"), "is damaged", marks=pytest.mark.slow),
        pytest.param(
            lambda kept: flip(kept / "graph.json"),
            "is damaged: graph.json: it was cut off or changed",
            marks=pytest.mark.slow,
        ),
        (lambda kept: change_index(kept / "graph.json", format=99), "was made by a newer edgemill (format 99)"),
        (lambda kept: change_index(kept / "graph.json", duplicates=99), "rows are not"),
        (lambda kept: change_index(kept / "graph.json", duplicates=-1), "are no counts"),
        (lambda kept: change_index(kept / "graph.json", format=float("inf")), "is damaged: graph.json: cannot convert"),
        (
            lambda kept: change_index(kept / "graph.json", starts=[0, 5, 10]),
            "is damaged: graph.json: ValueError('it lists 1, 1, 2",
        ),
    ],
)
def test_a_checkpoint_that_cannot_be_used(
    monkeypatch: pytest.MonkeyPatch,
    rows: Path,
    plain: Result,
    tmp_path: Path,
    change: Callable[[Path], None],
    reason: str,
) -> None:
    ended(monkeypatch, rows, tmp_path / "out")
    change(place(tmp_path / "out"))
    result = again(rows, tmp_path / "out")
    (told,) = refusals(result)
    assert reason in told
    assert "read" in stages(result)
    assert tables(result) == tables(plain)
    assert not place(tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"partitions": 99}, "number of shards"),
        pytest.param({"input.nulls": "drop"}, "input.nulls", marks=pytest.mark.slow),
        pytest.param({"source_column": "dst", "target_column": "src"}, "choice of columns", marks=pytest.mark.slow),
    ],
)
def test_other_settings(
    monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path, settings: dict[str, Any], name: str
) -> None:
    ended(monkeypatch, rows, tmp_path / "out")
    result = again(rows, tmp_path / "out", **settings)
    assert refusals(result) == [f"the checkpoint {place(tmp_path / 'out')} was made with another {name}"]
    assert "read" in stages(result)


def test_another_input(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    ended(monkeypatch, rows, tmp_path / "out")
    file = sorted(rows.glob("*.parquet"))[0]
    file.write_bytes(file.read_bytes())  # the same bytes, but nothing says so short of reading them
    result = again(rows, tmp_path / "out")
    [refusal] = refusals(result)
    assert refusal.endswith("another input")


@pytest.mark.slow
def test_other_ways_to_lambda_go_on(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    ended(monkeypatch, rows, tmp_path / "out", method="band")
    result = again(rows, tmp_path / "out", method="fixpoint")
    assert result.manifest.bounding.method == "fixpoint"
    assert "restore" in stages(result)


def ended_in_bands(monkeypatch: pytest.MonkeyPatch, rows: Path, out: Path, after: int, **settings: Any) -> None:
    """A run that loses its cluster after some iterations, with a checkpoint after each."""
    search, calls = OnCopies._search, iter(range(10**6))

    def lose(self: OnCopies, *how: Any) -> list[Any]:
        if next(calls) == after:
            raise ClusterLost("planted")
        return search(self, *how)

    with monkeypatch.context() as patch:
        patch.setattr(OnCopies, "_search", lose)
        with pytest.raises(ClusterLost, match="planted"):
            again(rows, out, **({"method": "band", "checkpoint": {"every_exchanges": 1}} | settings))


@pytest.mark.slow
@pytest.mark.parametrize("after", [1, 2, 5])
@pytest.mark.parametrize("method", ["band", "fixpoint"])
def test_a_search_goes_on(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path, after: int, method: str) -> None:
    how: dict[str, Any] = {"method": method}
    plain = again(rows, tmp_path / "plain", **how)
    assert plain.manifest.bounding.exchanges > 5
    ended_in_bands(monkeypatch, rows, tmp_path / "out", after, **how)
    result = again(rows, tmp_path / "out", **how)
    assert tables(result) == tables(plain)
    assert stages(result) == ["compile", "restore", "restore", "bound", "extract", "publish"]
    if method == "band":  # the threads of a fixpoint read bounds that others write: its iterations vary
        assert result.manifest.bounding == plain.manifest.bounding
        here, there = ([replace(exchange, seconds=0) for exchange in run.manifest.exchanges] for run in (result, plain))
        assert here == there
    done = [line["exchange"] for line in logged(result, "exchange")]
    assert done == list(range(after + 1, result.manifest.bounding.exchanges + 1))
    assert not place(tmp_path / "out").exists()


def test_of_two_generations_the_one_before_serves_when_the_last_is_damaged(
    monkeypatch: pytest.MonkeyPatch, rows: Path, plain: Result, tmp_path: Path
) -> None:
    ended_in_bands(monkeypatch, rows, tmp_path / "out", 6)
    kept = place(tmp_path / "out")
    names = sorted(entry.name.rpartition("-")[2] for entry in kept.iterdir() if entry.is_dir())
    assert names == ["1", "6", "7"]  # the graph, and two of bands
    folder = index_of(kept / "progress.json")["folder"]
    flip(kept / folder / "states-0.zip")
    result = again(rows, tmp_path / "out", method="band")
    (told,) = refusals(result)
    assert "states-0.zip" in told and "not what was written" in told
    assert tables(result) == tables(plain)
    assert logged(result, "exchange")[0]["exchange"] == 6
    ended_in_bands(monkeypatch, rows, tmp_path / "again", 6)
    for name in ("progress.json", "progress.before.json"):
        (place(tmp_path / "again") / name).write_text("[]")
    result = again(rows, tmp_path / "again", method="band")
    assert len(refusals(result)) == 2
    assert tables(result) == tables(plain)
    assert logged(result, "exchange")[0]["exchange"] == 1


def test_no_change_of_an_index_goes_unseen(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    """It names the files: others would change λ."""
    ended_in_bands(monkeypatch, rows, tmp_path / "out", 6)
    content = (place(tmp_path / "out") / "progress.json").read_bytes()
    assert opened(content)["files"]["states"] and len(opened(content)["exchanges"]) == 6
    for at in range(0, len(content), max(1, len(content) // 500)):
        for changed in (content[:at], content[:at] + bytes([content[at] ^ 1 << at % 8]) + content[at + 1 :]):
            with pytest.raises(ValueError, match="cut off"):
                opened(changed)


def test_bands_of_another_graph_are_not_used(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    ended_in_bands(monkeypatch, rows, tmp_path / "out", 3)
    kept = place(tmp_path / "out")
    change_index(kept / "progress.json", made_of={"graph": "graph-of-yesterday"})
    (kept / "progress.before.json").unlink()
    result = again(rows, tmp_path / "out", method="band")
    [refusal] = refusals(result)
    assert str(kept) in refusal and refusal.endswith("another graph")
    assert logged(result, "exchange")[0]["exchange"] == 1


def test_a_limit_counts_what_was_done_before(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    ended_in_bands(monkeypatch, rows, tmp_path / "out", 4)
    cut = again(rows, tmp_path / "out", max_exchanges=3, method="band")
    assert not cut.converged
    assert cut.manifest.bounding.exchanges == 4
    assert logged(cut, "exchange") == []


def test_no_room(monkeypatch: pytest.MonkeyPatch, rows: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match=r"cannot write the checkpoint .*; give checkpoint={\"path\": …}"):
        mine(rows, tmp_path / "out", device="cpu", checkpoint={"path": str(tmp_path / "file"), **ALWAYS})
    assert not (tmp_path / "out").exists()


def test_an_input_of_no_known_version_is_like_no_other(rows: Path) -> None:
    """A web server may not report whether a file has changed."""
    source = open_source(str(rows))
    unknown = replace(source, files=tuple(replace(file, version=None) for file in source.files))
    assert file_identities(source.files) == file_identities(source.files)
    assert file_identities(unknown.files) != file_identities(unknown.files)
    assert fingerprint(source) == fingerprint(source) is not None
    assert fingerprint(unknown) is None
