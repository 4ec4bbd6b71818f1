"""Compilation of GPU kernels in several processes: who takes which operation, and when it is done again."""

from __future__ import annotations

import fcntl
import os
import re
import subprocess
import threading
from pathlib import Path
from typing import Any

import pytest

from edgemill.kernels.gpu.compiling import first_run
from edgemill.kernels.gpu.compiling.first_run import operations


@pytest.mark.parametrize("shards", [False, True])
def test_each_operation_is_taken_once(monkeypatch: pytest.MonkeyPatch, shards: bool) -> None:
    taken: list[int] = []

    class Process:
        """Takes a few operations from the pipe at its start, and the last process all that remain."""

        def __init__(self, command: list[str], stdin: int, **_: Any) -> None:
            self.last = len(started_with) == 4
            started_with.append(command[1:])
            while (number := os.read(stdin, 2)) and (self.last or len(taken) % 7 < 6):
                taken.append(int.from_bytes(number, "little"))
            if number:
                taken.append(int.from_bytes(number, "little"))

    started_with: list[list[str]] = []
    monkeypatch.setattr(subprocess, "Popen", Process)
    assert len(first_run.start(5, shards)) == 5
    assert started_with == [["-m", "edgemill.kernels.gpu.compiling.first_run"]] * 5
    assert sorted(taken) == list(range(len(operations(shards))))


def test_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark holds while CuPy's cache keeps its kernels, for the same device, compiler and sources."""
    kept = tmp_path / "cupy"
    kept.mkdir()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(kept))
    monkeypatch.setattr(first_run, "_folder", lambda: tmp_path / "own")
    monkeypatch.setattr(first_run, "_device", lambda: "90")
    assert not first_run.is_prepared("peel")
    (kept / "a.cubin").touch()
    (kept / "b.cubin").touch()
    first_run.mark_prepared("peel")
    assert first_run.is_prepared("peel") and not first_run.is_prepared("band")
    with monkeypatch.context() as other:
        other.setattr(first_run, "_device", lambda: "100")
        assert not first_run.is_prepared("peel")
    (kept / "c.cubin").touch()
    assert first_run.is_prepared("peel")
    (kept / "a.cubin").unlink()
    (kept / "b.cubin").unlink()
    assert not first_run.is_prepared("peel")


def test_operations_of_shards_follow_those_of_one_gpu() -> None:
    """A process takes the number of an operation from either list."""

    def names(shards: bool) -> list[str]:
        return list(map(repr, operations(shards)))

    def without_address(name: str) -> str:
        return re.sub(" at 0x[0-9a-f]+", "", name)

    one, both = ([without_address(name) for name in names(shards)] for shards in (False, True))
    assert both[: len(one)] == one and len(both) > len(one)


def test_one_process_of_a_machine_compiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Others wait until it has ended, and compile what it has not."""
    kept = tmp_path / "cupy"
    kept.mkdir()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(kept))
    monkeypatch.setattr(first_run, "_folder", lambda: tmp_path / "own")
    monkeypatch.setattr(first_run, "_device", lambda: "90")
    events: list[str] = []
    waiting = threading.Event()

    def second() -> None:
        waiting.set()
        with first_run.preparing("peel"):
            events.append("second")

    with pytest.raises(OSError, match="no compiler"), first_run.preparing("peel"):
        raise OSError("no compiler")
    assert not first_run.is_prepared("peel")
    with first_run.preparing("peel"):
        thread = threading.Thread(target=second)
        thread.start()
        assert waiting.wait(30)
        with (tmp_path / "own" / "gpu.lock").open("w") as lock, pytest.raises(BlockingIOError):
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        assert not events
        (kept / "a.cubin").touch()
        events.append("first")
    thread.join(30)
    assert events == ["first", "second"]
    with first_run.preparing("peel"), first_run.preparing("peel"):  # nothing is locked once all is compiled
        assert first_run.is_prepared("peel")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(first_run, "_folder", lambda: tmp_path / "file" / "own")
    monkeypatch.setattr(first_run, "_device", lambda: "90")
    (tmp_path / "file").touch()
    with first_run.preparing("peel"):
        first_run.mark_prepared("peel")
    assert not first_run.is_prepared("peel")
