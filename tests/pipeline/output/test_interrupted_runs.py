"""Runs that signals interrupt or kill: their messages, exit codes, and what they leave."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import runs
from edgemill.pipeline.output.manifest import Manifest
from edgemill.pipeline.output.staging import LOG_NAME, FolderStaging
from edgemill.pipeline.results.result import Result
from edgemill.tasks.errors import OutputLocked
from edgemill.tasks.storage.folders import folder_at

WriteResult = Callable[..., Manifest]


def staging(out: Path | str, run: str = "run", overwrite: bool = False, input_path: str | None = None) -> FolderStaging:
    return FolderStaging(out, overwrite=overwrite, run_id=run, source=folder_at(input_path) if input_path else None)


def names(folder: Path) -> set[str]:
    return {entry.name for entry in folder.iterdir()}


RUN = """
import shutil
import signal, sys, types
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background job inherits it ignored
run = types.ModuleType("edgemill.pipeline.run.mining")
def mine_settings(settings, *, client, events, given):
    from edgemill.pipeline.output.staging import LOG_NAME, FolderStaging
    with FolderStaging(settings.output.path, overwrite=True, run_id=events.run_id) as staging:
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
IN_A_FINALISER = RUN.replace("run.mine", FINALISER + "run.mine")


@pytest.mark.parametrize(
    ("number", "code", "word", "script"),
    [
        pytest.param(signal.SIGTERM, 143, "terminated", RUN, id="15"),
        pytest.param(signal.SIGINT, 130, "interrupted", RUN, id="2"),
        pytest.param(signal.SIGTERM, 143, "terminated", IN_A_FINALISER, id="15-in a finaliser"),
        pytest.param(signal.SIGINT, 130, "interrupted", IN_A_FINALISER, id="2-in a finaliser", marks=pytest.mark.slow),
    ],
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
    again = "; press Ctrl-C again to exit at once" if number == signal.SIGINT else ""
    assert err == f"stopping{again}\nError: {word}\nlog of the failed run: {log}\n"
    assert f'"error": "{word}", "exit_code": {code}' in log.read_text().splitlines()[-1]
    assert names(tmp_path) == {"out", log.name}
    assert Result(out).manifest.run == "old"


BUSY = """
from edgemill.pipeline.cli import running
running.AGAIN_SECONDS = 0
def work():
    try:
        print("at work", flush=True)
        signal.pause()
    finally:
        while True:  # the cleanup takes long
            signal.pause()
"""


def test_a_second_ctrl_c_ends_a_run_at_once(tmp_path: Path) -> None:
    """The first is reported during the cleanup. The next run removes what a killed run leaves."""
    out = tmp_path / "out"
    command = [sys.executable, "-c", RUN.replace("run.mine_settings", BUSY + "run.mine_settings")]
    arguments = ["run", "--input", "edges", "--output", str(out)]
    with subprocess.Popen([*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as child:
        assert child.stdout is not None and child.stderr is not None
        assert child.stdout.readline() == "at work\n"
        child.send_signal(signal.SIGINT)
        assert child.stderr.readline().startswith("stopping; press Ctrl-C again")
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


def test_a_run_that_is_interrupted_while_its_workers_start(tmp_path: Path) -> None:
    """Dask logs nothing about a cluster that was not complete."""
    edges, script = runs.write_rows(tmp_path / "rows.parquet", [(1, 2), (2, 3), (1, 3)]), tmp_path / "starting.py"
    script.write_text(STARTING)
    arguments = ["run", "--input", str(edges), "--output", str(tmp_path / "out"), "--workers", "2", "--device", "cpu"]
    done = subprocess.run([sys.executable, str(script), *arguments], capture_output=True, text=True, check=False)
    log = tmp_path / "out.failed.log.jsonl"
    assert done.returncode == 143
    first, error, where = done.stderr.splitlines()
    assert (first, error) == ("stopping", "Error: terminated") and where.endswith(f": {log}")


HOLD = """
import signal
signal.signal(signal.SIGINT, signal.default_int_handler)
from edgemill.pipeline.monitor import display
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
    """The workers ignore it, and the driver ends them: stderr has only the end of the run."""
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
    error, where = err.splitlines()
    assert error == "Error: interrupted" and where.endswith(f": {tmp_path / 'out.failed.log.jsonl'}")


@pytest.mark.slow
def test_a_killed_run_blocks_no_other_run(tmp_path: Path, write_result: WriteResult) -> None:
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
