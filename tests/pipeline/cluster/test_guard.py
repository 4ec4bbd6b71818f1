"""A script that calls `mine` with worker processes and without a guard gets one error."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from edgemill.pipeline import ClusterLost, UsageError, mine
from edgemill.pipeline.cluster.connecting import guard
from edgemill.pipeline.cluster.connecting.start import connect
from edgemill.pipeline.settings.models import ClusterSettings
from known_graphs import FACEBOOK

UNGUARDED = """
import sys
from edgemill.pipeline import EdgemillError, mine
mine(sys.argv[1], sys.argv[2], workers=2)
"""
CAUGHT = """
import sys
from edgemill.pipeline import EdgemillError, mine
try:
    mine(sys.argv[1], sys.argv[2], workers=2)
except EdgemillError as error:
    print(error, file=sys.stderr)
    sys.exit(error.exit_code)
"""
ADVICE = 'call mine below `if __name__ == "__main__":` in it, or leave workers out'


def run_script(text: str, folder: Path) -> tuple[int, str]:
    """Exit status and stderr of a script. Fails if a process of its session outlives it."""
    script = folder / "script.py"
    script.write_text(text)
    words = [sys.executable, str(script), str(FACEBOOK), str(folder / "out")]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as process:
        _, said = process.communicate(timeout=250)
    left = [other for other in psutil.process_iter() if _session(other.pid) == process.pid]
    assert psutil.wait_procs(left, timeout=20)[1] == []  # multiprocessing's tracker of resources ends a moment later
    return process.returncode, said


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except ProcessLookupError:
        return None


@pytest.mark.slow
def test_one_error_names_the_guard(tmp_path: Path) -> None:
    status, said = run_script(UNGUARDED, tmp_path)
    assert status == 1  # as Python ends for any exception that a script does not catch
    assert said.count("Traceback") == 1
    assert "edgemill.tasks.errors.UsageError" in said
    assert ADVICE in said
    assert "RuntimeError" not in said and "Nanny" not in said
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_the_error_can_be_caught(tmp_path: Path) -> None:
    assert run_script(CAUGHT, tmp_path) == (
        2,
        f"worker processes (workers) import the script that starts them: {ADVICE}\n",
    )


@pytest.mark.slow
def test_a_guarded_script_runs(tmp_path: Path) -> None:
    """And logs nothing of Dask, also if it shows its own logs, in this process and in those of the workers."""
    lines = ["import logging", "logging.basicConfig(level=logging.INFO)", *UNGUARDED.strip().splitlines()]
    text = "\n".join([*lines[:-1], 'if __name__ == "__main__":', "    " + lines[-1]])
    assert run_script(text, tmp_path) == (0, "")
    assert (tmp_path / "out" / "manifest.json").exists()


def test_a_process_of_another_kind_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    """A child process of the user that imports a script with a call of mine gets the error."""
    monkeypatch.setattr(multiprocessing.current_process(), "_inheriting", True, raising=False)
    with pytest.raises(UsageError, match=r"`if __name__ == \"__main__\":`"):
        mine("edges", "out")


def test_workers_that_cannot_start_for_another_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    def start(*_: object, **__: object) -> Any:
        raise RuntimeError("Nanny failed to start.")

    monkeypatch.setattr("edgemill.pipeline.cluster.connecting.start._start", start)
    with (
        pytest.raises(ClusterLost, match="workers could"),
        connect(ClusterSettings(device="cpu", workers=2)),
    ):
        pass
    assert guard._MARKER not in os.environ
