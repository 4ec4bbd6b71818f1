"""The first run on a machine: its GPU kernels are compiled side by side, and later runs compile none."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from edgemill.tasks.generate import generate

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

PREPARE = """
from edgemill.kernels.gpu.compiling.first_run import start
assert all(process.wait() == 0 for process in start(8, {shards}))
"""


def kernels(cache: Path) -> set[str]:
    """The names of the kernels in CuPy's cache, each with the types that its source declares."""
    found = set()
    for path in cache.glob("*.cu"):
        text = path.read_text()
        names = re.findall(r"__global__\s+void\s+(?:__launch_bounds__\s*\([^)]*\)\s*)?(\w+)", text)
        found.add(" ".join([*names[:1], *re.findall(r"typedef (?!std)([^;]+);", text)[:4]]))
    return found


def with_caches(cupy: Path, own: Path) -> dict[str, str]:
    """An environment with these folders for compiled kernels."""
    folders = {"CUPY_CACHE_DIR": str(cupy), "CUPY_CACHE_SAVE_CUDA_SOURCE": "1", "EDGEMILL_CACHE_DIR": str(own)}
    return {**os.environ, **folders}


MISSING = {1: 0, 2: 4}
"""Partitions → most kernels that a run compiles itself."""


def takes_long(kernel: str) -> bool:
    """Whether it takes seconds to compile: our own kernels, and CuPy's reductions. Others take 0.1 to 0.2 s."""
    return not kernel.startswith("cupy_") or kernel.startswith("cupy_cub")


@pytest.mark.parametrize("partitions", MISSING)
def test_nothing_is_compiled_that_was_not_prepared(tmp_path: Path, partitions: int) -> None:
    generate("rmat", str(tmp_path / "rows"), files=4, seed=1, scale=19)
    cache = tmp_path / "cupy"
    environment = with_caches(cache, tmp_path / "own")

    def run(*arguments: str) -> None:
        subprocess.run([sys.executable, *arguments], env=environment, check=True, timeout=300)

    run("-c", PREPARE.format(shards=partitions > 1))
    prepared = kernels(cache)
    for out in ("first", "second"):
        command = ["-m", "edgemill.pipeline", "run", "--device", "gpu", "--partitions", str(partitions)]
        run(*command, "--input", str(tmp_path / "rows"), "--output", str(tmp_path / out))
        if out == "first":
            missing = sorted(kernels(cache) - prepared)
            assert [kernel for kernel in missing if takes_long(kernel)] == []
            assert len(missing) <= MISSING[partitions], missing
            files = set(cache.iterdir())
    assert set(cache.iterdir()) == files


AHEAD = """
from edgemill.kernels.gpu.compiling.ahead import compile_ahead
if __name__ == "__main__":
    assert compile_ahead({processes}) > 0
"""


@pytest.mark.parametrize("partitions", MISSING)
def test_own_kernels_are_compiled_ahead(tmp_path: Path, partitions: int) -> None:
    """A run, and vertex programs, load each of our own kernels that `edgemill warm gpu` compiles without a GPU."""
    generate("rmat", str(tmp_path / "rows"), files=1, seed=1, scale=10)
    cache = tmp_path / "cupy"
    environment = with_caches(cache, tmp_path / "own")
    script = tmp_path / "ahead.py"
    script.write_text(AHEAD.format(processes=8))
    without_gpu = {**environment, "CUDA_VISIBLE_DEVICES": ""}
    subprocess.run([sys.executable, str(script)], env=without_gpu, check=True, timeout=300)
    command = [sys.executable, "-m", "edgemill.pipeline", "run", "--device", "gpu", "--partitions", str(partitions)]
    command += ["--input", str(tmp_path / "rows"), "--output", str(tmp_path / "out")]
    command += ["--programs", "lambda,pagerank,components,labels,coreness,clustering"]
    subprocess.run(command, env=environment, check=True, timeout=300)
    compiled = kernels(cache)
    assert compiled
    assert [kernel for kernel in compiled if not kernel.startswith("cupy_")] == []
