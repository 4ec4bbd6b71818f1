"""The lock of an output: its owner and who may take it over, on file systems with and without locks and links."""

from __future__ import annotations

import errno
import fcntl
import os
import re
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psutil
import pytest

from edgemill.pipeline.output.lock import FolderLock, LockOwner
from edgemill.tasks.errors import OutputLocked

HERE = LockOwner.here("before")
DEAD = HERE.model_copy(update={"process_start": 1})
REBOOTED = HERE.model_copy(update={"boot": "another", "machine": HERE.machine or "none"})
CONTAINER = HERE.model_copy(update={"processes": "pid:[1]", "host": "container"})
ELSEWHERE = HERE.model_copy(update={"boot": "another", "machine": "another", "host": "other.example"})
PRINT_OWNER = "from edgemill.pipeline.output.lock import LockOwner; print(LockOwner.here('x').model_dump_json())"


@pytest.fixture(params=["locks and links", "no locks", "neither"])
def file_system(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    def refuse(number: int) -> Any:
        def call(*_: object, **__: object) -> None:
            raise OSError(number, os.strerror(number))

        return call

    if request.param != "locks and links":
        monkeypatch.setattr(fcntl, "flock", refuse(errno.ENOLCK))
    if request.param == "neither":
        monkeypatch.setattr(os, "link", refuse(errno.EPERM))
    return str(request.param)


def lock(folder: Path, run: str = "now") -> FolderLock:
    return FolderLock(folder / ".out.lock", "OUT", run)


def test_the_lock_names_its_owner(tmp_path: Path, file_system: str) -> None:
    first = lock(tmp_path, "first")
    assert first.take() is None
    assert os.listdir(tmp_path) == [".out.lock"]
    assert LockOwner.parse((tmp_path / ".out.lock").read_bytes()) == first.owner
    who = f"run first of {first.owner.user}, process {os.getpid()} on {first.owner.host}, since .* UTC; wait for it"
    with pytest.raises(OutputLocked, match=rf"writing.*{who}"):
        lock(tmp_path, "second").take()
    assert os.listdir(tmp_path) == [".out.lock"]
    assert first.is_held()
    first.release()
    assert os.listdir(tmp_path) == []
    second = lock(tmp_path, "second")
    assert second.take() is None
    second.release()


@pytest.mark.skipif(not HERE.boot or not HERE.processes, reason="no /proc: processes cannot be told apart")
@pytest.mark.parametrize("left_by", [DEAD, REBOOTED], ids=["process gone", "machine started again"])
def test_the_lock_of_a_dead_run_is_taken_over(
    tmp_path: Path, file_system: str, left_by: LockOwner, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgemill.pipeline.output.lock._machine", lambda: left_by.machine)
    (tmp_path / ".out.lock").write_bytes(left_by.as_json())
    taken = lock(tmp_path)
    assert taken.take() == left_by
    assert os.listdir(tmp_path) == [".out.lock"]
    assert taken.is_held()
    taken.release()
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize(
    "content", [HERE.as_json(), ELSEWHERE.as_json(), b"", b"{"], ids=["here", "far", "none", "cut"]
)
def test_the_lock_of_a_run_that_may_be_alive_is_not_taken_over(
    tmp_path: Path, file_system: str, content: bytes
) -> None:
    path = tmp_path / ".out.lock"
    path.write_bytes(content)
    with pytest.raises(OutputLocked, match=rf"surely.*{re.escape(str(path))}"):
        lock(tmp_path).take()
    assert os.listdir(tmp_path) == [path.name]
    assert path.read_bytes() == content


@pytest.mark.skipif(not HERE.boot, reason="no /proc: machines cannot be told apart")
def test_the_lock_of_a_container_is_taken_over_when_flock_is_released(tmp_path: Path) -> None:
    path = tmp_path / ".out.lock"
    path.write_bytes(CONTAINER.as_json())
    with path.open() as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        with pytest.raises(OutputLocked, match=r"on container, since .*; wait for it"):
            lock(tmp_path).take()
    taken = lock(tmp_path)
    assert taken.take() == CONTAINER
    taken.release()


@pytest.mark.skipif(not HERE.boot or not HERE.processes, reason="no /proc: processes cannot be told apart")
@pytest.mark.parametrize("left_by", [pytest.param(None, marks=pytest.mark.slow), DEAD], ids=["free", "left behind"])
def test_one_of_eight_threads_takes_the_lock(tmp_path: Path, left_by: LockOwner | None) -> None:
    start = threading.Barrier(8)

    def take(number: int) -> FolderLock | None:
        own = lock(tmp_path, f"run-{number}")
        start.wait()
        try:
            own.take()
        except OutputLocked:
            return None
        return own

    with ThreadPoolExecutor(8) as threads:
        for _ in range(100):
            if left_by is not None:
                (tmp_path / ".out.lock").write_bytes(left_by.as_json())
            (winner,) = [own for own in threads.map(take, range(8)) if own is not None]
            assert winner.is_held()
            assert os.listdir(tmp_path) == [".out.lock"]
            winner.release()
            assert os.listdir(tmp_path) == []


def test_a_removed_lock_is_not_held(tmp_path: Path, file_system: str) -> None:
    first, second = lock(tmp_path, "first"), lock(tmp_path, "second")
    first.take()
    (tmp_path / ".out.lock").unlink()
    assert not first.is_held()
    second.take()
    assert not first.is_held()
    first.release()
    assert second.is_held()
    second.release()
    assert os.listdir(tmp_path) == []


def test_leftovers_of_killed_runs_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".out.lock-killed").write_bytes(DEAD.as_json())
    (tmp_path / ".out.lock-killed.gone").write_bytes(DEAD.as_json())
    with (tmp_path / ".out.lock-starting").open("w") as starting:
        fcntl.flock(starting, fcntl.LOCK_EX)
        taken = lock(tmp_path)
        taken.take()
        assert sorted(os.listdir(tmp_path)) == [".out.lock", ".out.lock-starting"]
    taken.release()


def no_such_process(pid: int) -> None:
    raise psutil.NoSuchProcess(pid)


def test_a_zombie_is_dead() -> None:
    with subprocess.Popen([sys.executable, "-c", PRINT_OWNER], stdout=subprocess.PIPE) as ended:
        assert ended.stdout is not None
        owner = LockOwner.parse(ended.stdout.read())
        assert owner is not None
        os.waitid(os.P_PID, ended.pid, os.WEXITED | os.WNOWAIT)
        assert psutil.Process(ended.pid).status() == psutil.STATUS_ZOMBIE
        assert owner.is_dead()


def test_the_start_of_a_process_is_in_ticks_since_the_boot() -> None:
    """Earlier releases wrote the field of /proc/PID/stat itself."""
    fields = Path("/proc/self/stat").read_text().rpartition(")")[2].split()
    assert HERE.process_start == int(fields[19])


@pytest.mark.parametrize("hidden", [False, True])
def test_a_process_that_ended_is_dead(monkeypatch: pytest.MonkeyPatch, hidden: bool) -> None:
    done = subprocess.run([sys.executable, "-c", PRINT_OWNER], capture_output=True, check=True)
    owner = LockOwner.parse(done.stdout)
    assert owner is not None
    if hidden:  # /proc is mounted with hidepid: other users' processes are not visible
        monkeypatch.setattr(psutil, "Process", no_such_process)
    assert owner.is_dead()
    assert not HERE.is_dead()
    assert not HERE.is_dead(unlocked=True)
    assert not ELSEWHERE.is_dead(unlocked=True)
