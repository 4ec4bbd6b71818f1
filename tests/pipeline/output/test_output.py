"""The output folder: refused paths, and failed runs, which leave only their log."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from edgemill.pipeline.output.manifest import Manifest
from edgemill.pipeline.output.staging import LOG_NAME, FolderStaging
from edgemill.pipeline.results.result import Result
from edgemill.tasks.errors import OutOfRoom, OutputLocked, UsageError
from edgemill.tasks.storage.folders import folder_at

WriteResult = Callable[..., Manifest]


def staging(out: Path | str, run: str = "run", overwrite: bool = False, input_path: str | None = None) -> FolderStaging:
    return FolderStaging(out, overwrite=overwrite, run_id=run, source=folder_at(input_path) if input_path else None)


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


def test_commit_moves_the_folder_into_place(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "new/parents/out"
    with staging(out) as stage:
        assert stage.folder.parent == out.parent
        write_result(stage.folder)
        assert not out.exists()
        stage.commit()
    assert Result(out).manifest.counts.edges == 3
    assert names(out.parent) == {"out"}


def test_failure_leaves_only_the_log(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(RuntimeError, match="worse") as caught, staging(out) as stage:
        (stage.folder / "edges").mkdir()
        (stage.folder / LOG_NAME).write_text("{}\n")
        raise RuntimeError("worse")
    assert names(tmp_path) == {"out.failed.log.jsonl"}
    (note,) = caught.value.__notes__
    assert note.startswith("log ") and note.endswith(f": {out}.failed.log.jsonl")


def test_a_block_that_ends_without_commit_leaves_nothing(tmp_path: Path) -> None:
    with staging(tmp_path / "out"):
        pass
    assert names(tmp_path) == set()


def test_overwrite_replaces_a_result_only_at_the_commit(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "out"
    write_result(out, run="old")
    (out / "edges/stale.parquet").touch()
    with pytest.raises(KeyboardInterrupt), staging(out, overwrite=True) as stage:
        write_result(stage.folder, run="never")
        raise KeyboardInterrupt
    assert Result(out).manifest.run == "old"
    with staging(out, overwrite=True) as stage:
        write_result(stage.folder, run="new")
        assert Result(out).manifest.run == "old"
        stage.commit()
    assert Result(out).manifest.run == "new"
    assert names(tmp_path) == {"out"}
    assert names(out / "edges") == {"part-00000.parquet", "part-00001.parquet"}


def test_overwrite_replaces_an_empty_folder_and_follows_a_link(tmp_path: Path, write_result: WriteResult) -> None:
    real, link = tmp_path / "disk/real", tmp_path / "link"
    real.mkdir(parents=True)
    link.symlink_to(real)
    with staging(link, overwrite=True) as stage:
        write_result(stage.folder)
        stage.commit()
    assert link.is_symlink()
    assert Result(link).converged


@pytest.mark.parametrize("failing", [1, 2], ids=["moving the old one away", "moving the new one in"])
def test_failing_rename_keeps_the_old_result(
    tmp_path: Path, write_result: WriteResult, monkeypatch: pytest.MonkeyPatch, failing: int
) -> None:
    out, rename, calls = tmp_path / "out", os.rename, []

    def fail(source: Path, target: Path) -> None:
        calls.append(source)
        if len(calls) == failing:
            raise OSError(errno.EIO, "broken disk")
        rename(source, target)

    write_result(out, run="old")
    monkeypatch.setattr(os, "rename", fail)
    with pytest.raises(OSError, match="broken disk"), staging(out, overwrite=True) as stage:
        write_result(stage.folder, run="new")
        stage.commit()
    assert Result(out).manifest.run == "old"
    assert names(tmp_path) == {"out"}


def test_an_old_result_that_is_open_over_nfs(
    tmp_path: Path, write_result: WriteResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder cannot be removed while a file is open. A later run removes it; it never becomes the output again."""
    out = tmp_path / "out"

    def refuse(path: str, **_: object) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

    write_result(out, run="old")
    monkeypatch.setattr(os, "fwalk", refuse)
    with staging(out, overwrite=True) as stage:
        write_result(stage.folder, run="new")
        stage.commit()
    for _ in range(2):
        assert Result(out).manifest.run == "new"
        left = [name for name in names(tmp_path) if name.startswith(".out.edgemill-") and name.endswith("-gone")]
        assert len(left) == 1
        monkeypatch.undo()
        assert Result(tmp_path / left[0]).manifest.run == "old"
        monkeypatch.setattr(os, "fwalk", refuse)
        with staging(out, overwrite=True):
            pass
    monkeypatch.undo()
    with staging(out, overwrite=True):
        pass
    assert names(tmp_path) == {"out"}


def test_the_next_run_recovers_from_a_killed_one(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "out"
    write_result(tmp_path / ".out.edgemill-killed")
    write_result(tmp_path / ".out.edgemill-killed.old", run="old")
    write_result(tmp_path / ".out.edgemill-x.edgemill-run")  # another output, named out.edgemill-x
    with pytest.raises(UsageError, match="exists"), staging(out):
        pass
    assert Result(out).manifest.run == "old"
    assert names(tmp_path) == {"out", ".out.edgemill-x.edgemill-run"}


def test_one_run_at_a_time(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "out"
    with staging(out, "first") as first:
        with pytest.raises(OutputLocked, match=f"writing {out}"), staging(out, "second"):
            pass
        with staging(tmp_path / "beside", "third"):
            pass
        write_result(first.folder)
        first.commit()
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_output_created_during_the_run_is_not_replaced(tmp_path: Path, overwrite: bool) -> None:
    out = tmp_path / "out"
    with pytest.raises(UsageError, match=str(out)), staging(out, overwrite=overwrite) as stage:
        out.mkdir()
        (out / "thesis.tex").touch()
        stage.commit()
    assert names(out) == {"thesis.tex"}
    assert names(tmp_path) == {"out"}


def _file(path: Path) -> None:
    path.write_text("mine")


def _foreign(path: Path) -> None:
    path.mkdir()
    (path / "manifest.json").write_text('{"name": "something else"}')


@pytest.mark.parametrize(
    ("prepare", "overwrite", "message"),
    [
        (Path.mkdir, False, "exists: choose another, or replace it with output.overwrite=true"),
        (_foreign, False, "exists: choose another, or replace it with output.overwrite=true"),
        (_foreign, True, "is not an edgemill result, so output.overwrite=true does not replace it"),
        (_file, False, "exists and is not a folder"),
        (_file, True, "exists and is not a folder"),
    ],
)
def test_existing_output_is_refused(
    tmp_path: Path, prepare: Callable[[Path], None], overwrite: bool, message: str
) -> None:
    out = tmp_path / "out"
    prepare(out)
    with pytest.raises(UsageError, match=message), staging(out, overwrite=overwrite):
        pass
    assert out.is_file() or names(out) <= {"manifest.json"}
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("/dev/null/out", "cannot write in /dev/null: it is not a folder"),
        ("/proc/out", "cannot write in /proc: "),
        ("/", "a result cannot replace a root folder"),
    ],
)
def test_impossible_output_is_refused(out: str, message: str) -> None:
    with pytest.raises(UsageError, match=message), staging(out):
        pass


@pytest.mark.parametrize(
    ("input_path", "out", "refused"),
    [
        ("in", "in/out", "is inside the input"),
        ("in", "in", "the input in is inside it"),
        ("file://{root}/in", "in/out", "is inside the input"),
        ("in/edges/a.parquet", "in", "is inside it"),
        ("in/edges/a.parquet", "in/edges/a.parquet", "is inside it"),
        ("in/**/*.parquet", "in/out", "is inside the input"),
        ("in/*/*.parquet", "in/out", "is inside the input"),
        ("*/edges/*.parquet", "out", "is inside the input"),
        ("in/edges/*.parquet", "in/edges", "is inside it"),
        ("in/edges/*.parquet", "in/edges/out", None),
        ("*.parquet", "out", None),
        ("in/edges", "in/out", None),
        ("in", "inn", None),
        ("s3://bucket/in", "in/out", None),
    ],
)
def test_an_output_that_overlaps_the_input_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, input_path: str, out: str, refused: str | None
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in/edges").mkdir(parents=True)
    (tmp_path / "in/edges/a.parquet").touch()
    stage = staging(out, input_path=input_path.format(root=tmp_path), overwrite=True)
    if refused is None:
        with stage:
            pass
    else:
        with pytest.raises(UsageError, match=refused), stage:
            pass
    assert (tmp_path / "in/edges/a.parquet").exists()


def test_full_disk_has_its_own_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "mkdir", full)
    with pytest.raises(OutOfRoom, match="room left"), staging(tmp_path / "out"):
        pass
    assert names(tmp_path) == set()
