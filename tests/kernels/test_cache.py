"""The kernel cache, over real processes: sources hit at any path, an edited callee misses, no folder is no failure."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from edgemill.kernels import cache

CALLEE = """
from numba import njit

@njit(cache=True)
def weight(value):
    return value * {factor}
"""
CALLER = """
from numba import njit
from .callee import weight

@njit(cache=True)
def total(count):
    whole = 0
    for value in range(count):
        whole += weight(value)
    return whole
"""
ASK = """
from mill.kernels import cache
from mill.kernels.caller import total
answer = total(4)
print(answer, sum(total.stats.cache_hits.values()), total.stats.cache_path)
"""


def checkout(parent: Path, factor: int = 10) -> Path:
    """A package `mill` whose kernels folder holds this project's cache.py and two tiny kernels."""
    kernels = parent / "mill" / "kernels"
    kernels.mkdir(parents=True)
    shutil.copy(Path(cache.__file__), kernels / "cache.py")
    (kernels / "__init__.py").write_text("from . import cache\n\ncache.install()\ncache.install()\n")
    (kernels / "callee.py").write_text(CALLEE.format(factor=factor))
    (kernels / "caller.py").write_text(CALLER)
    return parent


def ask(where: Path, first: str = "", **environment: str) -> tuple[int, int, Path]:
    """The kernel's answer, how many of its compilations came from a cache, and the folder of that cache."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("NUMBA_CACHE", "XDG_", "EDGEMILL_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", first + ASK],
        env=kept | {"PYTHONPATH": str(where)} | environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    answer, hits, path = done.stdout.strip().split(" ", 2)
    return int(answer), int(hits), Path(path)


def test_same_sources_hit_at_another_path_and_an_edited_callee_misses(tmp_path: Path) -> None:
    home = tmp_path / "home"
    first = ask(checkout(tmp_path / "one"), EDGEMILL_CACHE_DIR=str(home))
    assert first[:2] == (60, 0)
    assert first[2].parent == home / "kernels"
    assert ask(checkout(tmp_path / "two"), EDGEMILL_CACHE_DIR=str(home)) == (60, 1, first[2])
    answer, hits, path = ask(checkout(tmp_path / "three", factor=100), EDGEMILL_CACHE_DIR=str(home))
    assert (answer, hits) == (600, 0)
    assert path != first[2]


def test_the_code_of_the_environment_is_used_and_not_written(tmp_path: Path) -> None:
    environment, home = tmp_path / "environment", tmp_path / "home"
    (environment / "lib").mkdir(parents=True)
    where = checkout(tmp_path / "one")
    prefix = f"import sys; sys.prefix = {str(environment)!r}\n"
    kept = ask(where, prefix, EDGEMILL_CACHE_DIR=str(environment / "share" / "edgemill"))[2]
    before = {path.name: path.read_bytes() for path in kept.iterdir()}
    assert ask(where, prefix, EDGEMILL_CACHE_DIR=str(home))[:2] == (60, 1)
    assert not list(home.rglob("*.nb*"))
    other = {"NUMBA_CPU_NAME": "x86-64-v2" if platform.machine() == "x86_64" else "cortex-a53"}
    assert ask(where, prefix, EDGEMILL_CACHE_DIR=str(home), **other)[:2] == (60, 0)  # not the code of another processor
    assert ask(where, prefix, EDGEMILL_CACHE_DIR=str(home), **other)[:2] == (60, 1)
    assert {path.name: path.read_bytes() for path in kept.iterdir()} == before


def test_the_users_own_numba_folder_wins(tmp_path: Path) -> None:
    where = checkout(tmp_path / "one")
    path = ask(where, EDGEMILL_CACHE_DIR=str(tmp_path / "home"), NUMBA_CACHE_DIR=str(tmp_path / "numba"))[2]
    assert path.is_relative_to(tmp_path / "numba")
    assert not (tmp_path / "home").exists()


def test_a_folder_that_cannot_be_written_leaves_numba_to_its_own(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    where = checkout(tmp_path / "one")
    answer, _, path = ask(where, EDGEMILL_CACHE_DIR=str(blocked / "home"))
    assert answer == 60
    assert path == where / "mill" / "kernels" / "__pycache__"


def test_with_nowhere_to_write_kernels_still_run(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    where = checkout(tmp_path / "one")
    (where / "mill" / "kernels" / "__pycache__").touch()  # a file where Numba wants a folder
    answer, hits, path = ask(where, HOME=str(blocked), XDG_CACHE_HOME=str(blocked), TMPDIR=str(tmp_path))
    assert (answer, hits) == (60, 0)
    assert path.is_relative_to(tmp_path)
    assert not path.exists()


def test_a_race_of_two_processes_mixes_no_code(tmp_path: Path) -> None:
    numba_files: Any = cache.KernelFiles
    first, second = (numba_files(str(tmp_path), "kernel", cache._fingerprint()) for _ in range(2))
    first.save("int64", "code for int64")
    index = (tmp_path / "kernel.nbi").read_bytes()
    (tmp_path / "kernel.nbi").unlink()  # the other process had looked before
    second.save("int32", "code for int32")
    (tmp_path / "kernel.nbi").write_bytes(index)  # and the first one's index is the one that stays
    assert second.load("int64") == "code for int64"


def test_folders_unused_for_long_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEMILL_CACHE_DIR", str(tmp_path))
    current = cache.folder()
    folders = {name: current.parent / name for name in ("0" * 32, "1" * 32, "not ours")}
    for path in (current, *folders.values()):
        path.mkdir(parents=True)
    for path in (current, folders["0" * 32], folders["not ours"]):
        os.utime(path, (0, 0))
    cache._forget_unused(current)
    assert sorted(path.name for path in current.parent.iterdir()) == sorted(["1" * 32, "not ours", current.name])
    assert current.stat().st_mtime > 0
