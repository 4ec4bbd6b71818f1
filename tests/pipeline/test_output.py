"""The output folder: what is refused, and that a run that does not end leaves nothing but its log."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from edgemill.pipeline.manifest import Manifest
from edgemill.pipeline.output import LOG_NAME, Staging
from edgemill.pipeline.result import Result
from edgemill.tasks.errors import OutOfRoom, OutputLocked, UsageError
from edgemill.tasks.places import place_of

WriteResult = Callable[..., Manifest]


def staging(out: Path | str, run: str = "run", overwrite: bool = False, input_path: str | None = None) -> Staging:
    return Staging(out, overwrite=overwrite, run_id=run, source=place_of(input_path) if input_path else None)


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
    assert caught.value.__notes__ == [f"log of the failed run: {out}.failed.log.jsonl"]


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


def test_overwrite_takes_an_empty_folder_and_follows_a_link(tmp_path: Path, write_result: WriteResult) -> None:
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


def test_an_old_result_that_somebody_reads_over_nfs(
    tmp_path: Path, write_result: WriteResult, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its folder cannot be removed until then: it is cleared later, and never put back."""
    out = tmp_path / "out"

    def refuse(path: str, dir_fd: int) -> None:
        raise OSError(errno.ENOTEMPTY, "Directory not empty", path)

    write_result(out, run="old")
    monkeypatch.setattr(shutil, "rmtree", refuse)
    with staging(out, overwrite=True) as stage:
        write_result(stage.folder, run="new")
        stage.commit()
    for _ in range(2):
        assert Result(out).manifest.run == "new"
        left = [name for name in names(tmp_path) if name.startswith(".out.edgemill-") and name.endswith("-gone")]
        assert len(left) == 1
        monkeypatch.undo()
        assert Result(tmp_path / left[0]).manifest.run == "old"
        monkeypatch.setattr(shutil, "rmtree", refuse)
        with staging(out, overwrite=True):
            pass
    monkeypatch.undo()
    with staging(out, overwrite=True):
        pass
    assert names(tmp_path) == {"out"}


def test_what_a_killed_run_left_is_settled_by_the_next(tmp_path: Path, write_result: WriteResult) -> None:
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
        with pytest.raises(OutputLocked, match=f"another run is writing {out}"), staging(out, "second"):
            pass
        with staging(tmp_path / "beside", "third"):
            pass
        write_result(first.folder)
        first.commit()
    assert names(tmp_path) == {"out"}


@pytest.mark.parametrize("overwrite", [False, True])
def test_an_output_that_appears_meanwhile_is_left_alone(tmp_path: Path, overwrite: bool) -> None:
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
        (_foreign, True, "is not an edgemill result, so output.overwrite=true leaves it alone"),
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
        ("/", "a result cannot take the place of a root folder"),
    ],
)
def test_impossible_output_is_refused(out: str, message: str) -> None:
    with pytest.raises(UsageError, match=message), staging(out):
        pass


@pytest.mark.parametrize(
    ("input_path", "out", "refused"),
    [
        ("in", "in/out", "lies in the input"),
        ("in", "in", "the input in lies in it"),
        ("file://{root}/in", "in/out", "lies in the input"),
        ("in/edges/a.parquet", "in", "lies in it"),
        ("in/edges/a.parquet", "in/edges/a.parquet", "lies in it"),
        ("in/**/*.parquet", "in/out", "lies in the input"),
        ("in/*/*.parquet", "in/out", "lies in the input"),
        ("*/edges/*.parquet", "out", "lies in the input"),
        ("in/edges/*.parquet", "in/edges", "lies in it"),
        ("in/edges/*.parquet", "in/edges/out", None),
        ("*.parquet", "out", None),
        ("in/edges", "in/out", None),
        ("in", "inn", None),
        ("s3://bucket/in", "in/out", None),
    ],
)
def test_output_is_kept_apart_from_the_input(
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
    with pytest.raises(OutOfRoom, match="no room left"), staging(tmp_path / "out"):
        pass
    assert names(tmp_path) == set()


RUN = """
import shutil
import signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
run = types.ModuleType("edgemill.pipeline.mining")
def mine_settings(settings, *, client, events):
    from edgemill.pipeline.output import LOG_NAME, Staging
    with Staging(settings.output.path, overwrite=True, run_id=events.run_id) as staging:
        with events.recording(staging.folder / LOG_NAME, settings.model_dump()):
            work()
            signal.pause()
def work():
    print("at work", flush=True)
run.mine_settings = mine_settings
sys.modules[run.__name__] = run
from edgemill.pipeline.cli import main
main()
"""


FINALISER = """
class Last:
    def __del__(self):
        print("at work", flush=True)
        signal.pause()
work = Last
"""


@pytest.mark.parametrize("script", [RUN, RUN.replace("run.mine", FINALISER + "run.mine")], ids=["", "in a finaliser"])
@pytest.mark.parametrize(
    ("number", "code", "word"), [(signal.SIGTERM, 143, "terminated"), (signal.SIGINT, 130, "interrupted")]
)
def test_signals_end_a_run_cleanly(
    tmp_path: Path, write_result: WriteResult, script: str, number: signal.Signals, code: int, word: str
) -> None:
    out = tmp_path / "out"
    write_result(out, run="old")
    arguments = ["run", "--input", "edges", "--output", str(out)]
    command = [sys.executable, "-c", script, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(number)
        if number == signal.SIGTERM:
            child.send_signal(number)  # as `timeout` does
        _, err = child.communicate()
    log = tmp_path / "out.failed.log.jsonl"
    assert child.returncode == code
    again = "; Ctrl-C again ends it at once, and the next run clears up" if number == signal.SIGINT else ""
    assert err == f"stopping{again}\nError: {word}\nlog of the failed run: {log}\n"
    assert f'"error": "{word}", "exit_code": {code}' in log.read_text().splitlines()[-1]
    assert names(tmp_path) == {"out", log.name}
    assert Result(out).manifest.run == "old"


BUSY = """
from edgemill.pipeline.cli import stopping
stopping.AGAIN_SECONDS = 0
def work():
    try:
        print("at work", flush=True)
        signal.pause()
    finally:
        while True:  # clearing up takes long
            signal.pause()
"""


def test_a_second_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    """The first is answered while the run still clears up, and what a killed run leaves the next one clears."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", RUN.replace("run.mine_settings", BUSY + "run.mine_settings")]
    arguments = ["run", "--input", "edges", "--output", str(out)]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(signal.SIGINT)
        assert child.stderr.readline().startswith("stopping; Ctrl-C again ends it at once")
        child.send_signal(signal.SIGINT)
        assert (child.wait(), child.stderr.read()) == (130, "")
    [folder] = (name for name in names(tmp_path) if not name.endswith(".lock"))
    log = [json.loads(line) for line in (tmp_path / folder / LOG_NAME).read_text().splitlines()]
    assert [line["event"] for line in log] == ["run_started", "stopping"]
    with staging(out):
        assert folder not in names(tmp_path)


STARTING = """
import asyncio, os, signal
from distributed.deploy.spec import SpecCluster
async def start(self):
    os.kill(os.getpid(), signal.SIGTERM)
    await asyncio.Event().wait()
SpecCluster._correct_state_internal = start
from edgemill.pipeline.cli import main
if __name__ == "__main__":
    main()
"""


def test_a_run_that_is_ended_while_its_workers_start(tmp_path: Path) -> None:
    """Dask has nothing to say of a cluster that was half made."""
    edges, script = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)]), tmp_path / "starting.py"
    script.write_text(STARTING)
    arguments = ["run", "--input", str(edges), "--output", str(tmp_path / "out"), "--workers", "2", "--device", "cpu"]
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)
    log = tmp_path / "out.failed.log.jsonl"
    assert (done.returncode, done.stderr) == (143, f"stopping\nError: terminated\nlog of the failed run: {log}\n")


HOLD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from edgemill.pipeline import display
class Hold:
    def show(self, event):
        if event["event"] == "planned":
            print("at work", flush=True)
            signal.pause()
    def close(self):
        pass
display.display_for = lambda *_: Hold()
from edgemill.pipeline.cli import main
if __name__ == "__main__":
    main()
"""


@pytest.mark.slow
def test_ctrl_c_in_a_terminal_reaches_the_workers_too(tmp_path: Path) -> None:
    """They leave it to the driver, which ends them: there is nothing on stderr but the run's own end."""
    edges, script = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)]), tmp_path / "hold.py"
    script.write_text(HOLD)
    arguments = ["run", "--input", str(edges), "--output", str(tmp_path / "out"), "--workers", "2", "--device", "cpu"]
    command = [sys.executable, str(script), *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True, start_new_session=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at work\n"
        os.killpg(child.pid, signal.SIGINT)
        _, err = child.communicate()
    assert child.returncode == 130
    assert err == f"Error: interrupted\nlog of the failed run: {tmp_path / 'out.failed.log.jsonl'}\n"


def test_killed_run_blocks_nobody(tmp_path: Path, write_result: WriteResult) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", RUN, "run", "--input", "edges", "--output", str(out)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "at work\n"
        with pytest.raises(OutputLocked), staging(out):
            pass
        child.kill()
    assert not out.exists()
    with staging(out) as stage:
        assert stage.left_by is not None
        assert stage.left_by.pid == child.pid
        write_result(stage.folder)
        stage.commit()
    assert names(tmp_path) == {"out"}
