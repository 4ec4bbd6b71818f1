"""The kernel cache, over real processes: sources hit at any path, an edited callee misses, a missing folder is fine."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import numba
import pytest

from edgemill.kernels.runtime import cache

CALLEE = """
from .runtime.cache import cached_njit

@cached_njit
def weight(value):
    return value * {factor}
"""
CALLER = """
from .callee import weight
from .runtime.cache import cached_njit

@cached_njit
def total(count):
    whole = 0
    for value in range(count):
        whole += weight(value)
    return whole
"""
ASK = """
from mill.kernels.runtime import cache
from mill.kernels.caller import total
answer = total(4)
print(answer, sum(total.stats.cache_hits.values()), total.stats.cache_path)
"""


def checkout(parent: Path, factor: int = 10) -> Path:
    """A package `mill` whose kernels folder holds this project's cache and two tiny kernels."""
    kernels = parent / "mill" / "kernels"
    kernels.mkdir(parents=True)
    (kernels / "runtime").mkdir()
    for name in ("cache.py", "cache_folder.py", "threads.py"):
        shutil.copy(Path(cache.__file__).with_name(name), kernels / "runtime")
    (kernels / "runtime" / "__init__.py").write_text("")
    (kernels / "__init__.py").write_text("from .runtime import cache\n\ncache.remove_unused()\n")
    (kernels / "callee.py").write_text(CALLEE.format(factor=factor))
    (kernels / "caller.py").write_text(CALLER)
    return parent


def ask(where: Path, first: str = "", last: str = "", **environment: str) -> tuple[int, int, Path]:
    """The kernel's answer, how many of its compilations came from a cache, and the folder of that cache."""
    kept = {
        name: text for name, text in os.environ.items() if not name.startswith(("NUMBA_CACHE", "XDG_", "EDGEMILL_"))
    }
    done = subprocess.run(
        [sys.executable, "-c", first + ASK + last],
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
    no_compiler = "import sys; assert 'numba.np.linalg' not in sys.modules"  # which the compiler imports
    assert ask(checkout(tmp_path / "two"), last=no_compiler, EDGEMILL_CACHE_DIR=str(home)) == (60, 1, first[2])
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


@pytest.mark.skipif(cache._portable() is None, reason="this processor needs kernels of its own")
def test_the_environment_has_code_for_all_usual_processors(tmp_path: Path) -> None:
    """It is compiled as docker/install.sh does, and a processor that the user names gets its own."""
    environment, home = tmp_path / "environment", tmp_path / "home"
    where, prefix = checkout(tmp_path / "one"), f"import sys; sys.prefix = {str(environment)!r}\n"
    ahead = {"NUMBA_CPU_NAME": str(cache._portable()), "NUMBA_CPU_FEATURES": ""}
    assert ask(where, EDGEMILL_CACHE_DIR=str(environment / "share" / "edgemill"), **ahead)[:2] == (60, 0)
    assert ask(where, prefix, EDGEMILL_CACHE_DIR=str(home))[:2] == (60, 1)
    assert not list(home.rglob("*.nb*"))
    named = {"NUMBA_CPU_NAME": "generic"}
    assert ask(where, prefix, EDGEMILL_CACHE_DIR=str(home), **named)[:2] == (60, 0)


def test_processors_that_need_their_own_code(monkeypatch: pytest.MonkeyPatch) -> None:
    name, needed = "x86-64-v3", cache.PORTABLE["x86_64"][1]
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")
    monkeypatch.setattr(cache, "_features", lambda: needed | {"avx512f"})
    key = "signature", ("x86_64-unknown-linux-gnu", "skylake", "+avx2"), "code"
    portable = "signature", ("x86_64-unknown-linux-gnu", name, ""), "code"
    assert (cache._portable(), cache._portable_key(key)) == (name, portable)
    for setting, value in (("CPU_NAME", "skylake"), ("CPU_FEATURES", "")):
        with monkeypatch.context() as chosen:
            chosen.setattr(numba.config, setting, value)
            assert cache._portable() is None
    monkeypatch.setattr(cache, "_features", lambda: needed - {"bmi2"})
    assert (cache._portable(), cache._portable_key(key)) == (None, None)
    monkeypatch.setattr(platform, "machine", lambda: "riscv64")
    assert cache._portable() is None


def test_images_compile_for_the_processor_that_is_looked_for() -> None:
    script = (Path(cache.__file__).parents[2] / "docker" / "install.sh").read_text()
    for machine, (name, _) in cache.PORTABLE.items():
        pattern = machine if f"{machine})" in script else r"\*"
        assert re.search(rf"{pattern}\) processor={name} ;;", script)


def test_the_users_own_numba_folder_wins(tmp_path: Path) -> None:
    where = checkout(tmp_path / "one")
    path = ask(where, EDGEMILL_CACHE_DIR=str(tmp_path / "home"), NUMBA_CACHE_DIR=str(tmp_path / "numba"))[2]
    assert path.is_relative_to(tmp_path / "numba")
    assert not (tmp_path / "home").exists()


@pytest.mark.slow
def test_without_a_writable_folder_numba_chooses(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    where = checkout(tmp_path / "one")
    answer, _, path = ask(where, EDGEMILL_CACHE_DIR=str(blocked / "home"))
    assert answer == 60
    assert path == where / "mill" / "kernels" / "__pycache__"


def test_kernels_run_without_any_writable_folder(tmp_path: Path) -> None:
    blocked = tmp_path / "a file"
    blocked.touch()
    where = checkout(tmp_path / "one")
    (where / "mill" / "kernels" / "__pycache__").touch()  # a file at the path of Numba's folder
    answer, hits, path = ask(where, HOME=str(blocked), XDG_CACHE_HOME=str(blocked), TMPDIR=str(tmp_path))
    assert (answer, hits) == (60, 0)
    assert path.is_relative_to(tmp_path)
    assert not path.exists()


def test_functions_of_other_packages_keep_the_cache_of_numba() -> None:
    caching, dispatcher = import_module("numba.core.caching"), import_module("numba.core.dispatcher")
    assert dispatcher.FunctionCache is caching.FunctionCache
    assert caching.IndexDataCacheFile.__module__ == "numba.core.caching"
    assert all(locator.__module__ == "numba.core.caching" for locator in caching.CacheImpl._locator_classes)


def test_two_processes_that_save_at_once_do_not_mix_code(tmp_path: Path) -> None:
    numba_files: Any = cache.KernelFiles
    first, second = (numba_files(str(tmp_path), "kernel", cache._fingerprint()) for _ in range(2))
    first.save("int64", "code for int64")
    index = (tmp_path / "kernel.nbi").read_bytes()
    (tmp_path / "kernel.nbi").unlink()  # the second process has read the index before
    second.save("int32", "code for int32")
    (tmp_path / "kernel.nbi").write_bytes(index)  # and the index of the first process remains
    assert second.load("int64") == "code for int64"


def test_folders_unused_for_30_days_are_removed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EDGEMILL_CACHE_DIR", str(tmp_path))
    current = cache.folder()
    folders = {name: current.parent / name for name in ("0" * 32, "1" * 32, "not ours")}
    for path in (current, *folders.values()):
        path.mkdir(parents=True)
    for path in (current, folders["0" * 32], folders["not ours"]):
        os.utime(path, (0, 0))
    cache._remove_unused(current)
    assert sorted(path.name for path in current.parent.iterdir()) == sorted(["1" * 32, "not ours", current.name])
    assert current.stat().st_mtime > 0
