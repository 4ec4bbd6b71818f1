"""Input files that are replaced, written to, removed or added during a run."""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

import runs
from edgemill.pipeline import InputError, Result, mine
from edgemill.pipeline.cli import edgemill as command
from edgemill.pipeline.events import Events
from edgemill.tasks.ingest.reading import read_rows
from edgemill.tasks.inputs.formats.parquet import open_parquet
from edgemill.tasks.inputs.open_source import open_source
from edgemill.tasks.inputs.sources import plan_blocks, refuse_changed_files
from trials import Trials

FILES = 30
HOW: dict[str, Any] = {
    "device": "cpu",
    "partitions": 2,
    "output.report": False,
    "ingest": {"rows_per_block": 5},
}
MOMENTS = {
    "before a block is read": ("stage_started", "read"),
    "while blocks are read": ("task_done", "read"),
    "when all are read": ("stage_started", "number"),
    "while the result is written": ("stage_started", "publish"),
}


def clique(folder: Path, first: int) -> Path:
    """Thirty files of five rows each, of equal sizes and times: the edges of a clique of 18 vertices."""
    folder.mkdir()
    edges = [(first + a, first + b) for a in range(18) for b in range(a)]
    for number in range(FILES):
        sources, targets = zip(*edges[5 * number : 5 * number + 5], strict=True)
        path = folder / f"{number:02}.parquet"
        pq.write_table(pa.table({"src": sources, "dst": targets}), path, compression="none")
        os.utime(path, (1, 1))
    return folder


def at(moment: str, strike: Callable[[], None], monkeypatch: pytest.MonkeyPatch) -> None:
    """Call `strike` once, at an event of the run."""
    emit, left = Events.emit, [strike]

    def told(self: Events, event: str, /, **fields: object) -> None:
        emit(self, event, **fields)
        if left and (event, fields.get("stage")) == MOMENTS[moment]:
            left.pop()()

    monkeypatch.setattr(Events, "emit", told)


def swap(now: Path, other: Path) -> None:
    for path in sorted(other.iterdir()):
        os.replace(path, now / path.name)


def edges(result: Result) -> pa.Table:
    return result.edges.to_table()


def cluster(kind: str) -> AbstractContextManager[Client | None]:
    return runs.two_processes() if kind == "processes" else nullcontext()


@pytest.mark.parametrize(
    ("moment", "kind"),
    [
        pytest.param("while blocks are read", "one process", marks=pytest.mark.slow),
        ("while the result is written", "one process"),
        *(pytest.param(moment, "processes", marks=pytest.mark.slow) for moment in MOMENTS),
    ],
)
def test_all_files_are_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, moment: str, kind: str
) -> None:
    """Files are replaced by others of as many rows and bytes. Nothing is published, and the checkpoint is not used."""
    rows, other, out = clique(tmp_path / "rows", 100), clique(tmp_path / "other", 107), tmp_path / "out"
    right = edges(mine(other, tmp_path / "right", device="cpu", partitions=2))
    late = moment == "while the result is written"
    with monkeypatch.context() as patch, cluster(kind) as client:
        at(moment, lambda: swap(rows, other), patch)
        with pytest.raises(InputError, match="changed during") as raised:
            mine(rows, out, client=client, checkpoint={"every_seconds": 0.0 if late else None}, **HOW)
    assert raised.value.exit_code == 3
    kept = {".out.edgemill.checkpoint"} if late else set()
    assert {path.name for path in tmp_path.iterdir()} == {"rows", "other", "right", "out.failed.log.jsonl"} | kept
    assert edges(mine(rows, out, **(HOW | {"ingest": {}}))) == right
    trials("all files of the input are replaced during a run", "refused")


@pytest.mark.parametrize(
    "moment",
    [name if "blocks" in name or "result" in name else pytest.param(name, marks=pytest.mark.slow) for name in MOMENTS],
)
def test_a_file_vanishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials, moment: str) -> None:
    from click.testing import CliRunner

    rows, out = clique(tmp_path / "rows", 100), tmp_path / "out"
    at(moment, (rows / "29.parquet").unlink, monkeypatch)
    words = ["run", "--input", str(rows), "--output", str(out), "--device", "cpu", "--set", "ingest.rows_per_block=5"]
    ended = CliRunner().invoke(command, words)
    assert (ended.exit_code, out.exists()) == (3, False)
    assert ended.stderr.startswith(f"Error: {rows}/29.parquet was removed during the run")
    assert {path.name for path in tmp_path.iterdir()} == {"rows", "out.failed.log.jsonl"}
    trials("a file of the input vanishes during a run", "refused")


def test_a_file_that_is_added_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials) -> None:
    """The files at the start are the input. The next run has another input."""
    rows, other, out = clique(tmp_path / "rows", 100), clique(tmp_path / "other", 107), tmp_path / "out"
    right = edges(mine(rows, tmp_path / "right", **HOW))
    at("before a block is read", lambda: os.replace(other / "00.parquet", rows / "99.parquet"), monkeypatch)
    result = mine(rows, out, **HOW)
    assert edges(result) == right
    assert [Path(file.path).name for file in result.manifest.input.files] == [f"{n:02}.parquet" for n in range(FILES)]
    assert mine(rows, out, overwrite=True, **HOW).manifest.counts.rows == result.manifest.counts.rows + 5
    trials("a file is added to the input during a run", "same")


def test_another_file_with_the_same_time_and_size(tmp_path: Path) -> None:
    rows, other = clique(tmp_path / "rows", 100), clique(tmp_path / "other", 107)
    source = open_source(str(rows))
    block = plan_blocks(source, 5)[3]
    before, after = (rows / "03.parquet").stat(), (other / "03.parquet").stat()
    assert (before.st_size, before.st_mtime_ns) == (after.st_size, after.st_mtime_ns)
    read_rows(source, block)
    os.replace(other / "03.parquet", rows / "03.parquet")
    with pytest.raises(InputError, match=r"03\.parquet.*during"):
        read_rows(source, block)


def test_a_file_is_written_to_while_it_is_read(tmp_path: Path) -> None:
    """A file that is replaced by a rename is read as it was. The run notices it before it publishes the result."""
    rows, other = clique(tmp_path / "rows", 100), clique(tmp_path / "other", 107)
    source = open_source(str(rows))
    first, second = source.files[:2]
    with (
        pytest.raises(InputError, match=r"00\.parquet.*during"),
        open_parquet(first.path, first.version, {}) as file,
    ):
        (rows / "00.parquet").write_bytes((other / "00.parquet").read_bytes())
        file.read()
    right = pq.read_table(second.path)
    with open_parquet(second.path, second.version, {}) as file:
        os.replace(other / "01.parquet", second.path)
        assert file.read() == right
    with pytest.raises(InputError, match=r"0[01]\.parquet changed"):
        refuse_changed_files(source)


def test_a_file_that_is_damaged_while_it_is_read_has_changed(tmp_path: Path) -> None:
    rows = clique(tmp_path / "rows", 100)
    source = open_source(str(rows))
    (rows / "00.parquet").write_bytes(b"PAR1")
    with pytest.raises(InputError, match=r"00\.parquet.*during"):
        read_rows(source, plan_blocks(source, 5)[0])
