"""Compilation of GPU kernels in several processes: who takes which operation, and when it is done again."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from edgemill.kernels.gpu.preparing import processes
from edgemill.kernels.gpu.preparing.operations import operations
from edgemill.kernels.runtime import cache


def test_each_operation_is_taken_once(monkeypatch: pytest.MonkeyPatch) -> None:
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
    assert len(processes.start(5)) == 5
    assert started_with == [["-m", "edgemill.kernels.gpu.preparing.processes"]] * 5
    assert sorted(taken) == list(range(len(operations())))


def test_marks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A mark holds while CuPy's cache keeps its kernels, for the same device, compiler and sources."""
    kept = tmp_path / "cupy"
    kept.mkdir()
    monkeypatch.setenv("CUPY_CACHE_DIR", str(kept))
    monkeypatch.setattr(cache, "folder", lambda: tmp_path / "own")
    monkeypatch.setattr(processes, "_device", lambda: "90")
    assert not processes.is_prepared("peel")
    (kept / "a.cubin").touch()
    (kept / "b.cubin").touch()
    processes.mark_prepared("peel")
    assert processes.is_prepared("peel") and not processes.is_prepared("band")
    with monkeypatch.context() as other:
        other.setattr(processes, "_device", lambda: "100")
        assert not processes.is_prepared("peel")
    (kept / "c.cubin").touch()
    assert processes.is_prepared("peel")
    (kept / "a.cubin").unlink()
    (kept / "b.cubin").unlink()
    assert not processes.is_prepared("peel")


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUPY_CACHE_DIR", str(tmp_path / "none"))
    monkeypatch.setattr(cache, "folder", lambda: tmp_path / "file" / "own")
    monkeypatch.setattr(processes, "_device", lambda: "90")
    (tmp_path / "file").touch()
    processes.mark_prepared("peel")
    assert not processes.is_prepared("peel")
