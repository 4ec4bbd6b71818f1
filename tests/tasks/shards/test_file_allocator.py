"""Arrays of shards in temporary files, and compiling the kernels of shards in advance."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest

from edgemill.tasks.errors import OutOfRoom
from edgemill.tasks.shards import FileAllocator, file_allocator
from sharding import drawn, levels, ordered, other_peel, peel_in_groups
from support_path import SUPPORT_PATH


def test_rows_in_files(tmp_path: Path) -> None:
    """λ is the same, and no file and no thread is left behind."""
    graph = ordered(drawn(1, 90, 4000))
    with FileAllocator(tmp_path, 0) as allocator, FileAllocator(tmp_path, 2**40) as wide:
        peeled = peel_in_groups(graph, 4, 2, allocators=[allocator, wide])
        assert not list(tmp_path.iterdir())
        assert len(watching_threads()) == 2
    assert not watching_threads()
    assert levels(graph, 4, peeled) == other_peel(graph)
    assert wide.trims == 0


def watching_threads() -> list[threading.Thread]:
    """The threads of file allocators."""
    return [thread for thread in threading.enumerate() if thread.name == "edgemill-file-allocator"]


def test_content_survives_unmapping(tmp_path: Path) -> None:
    with FileAllocator(tmp_path, 2**20) as allocator:
        array = allocator.allocate(2**21, np.int64)
        array[:] = np.arange(2**21)
        trims = allocator.trims
        while allocator.trims < trims + 2:
            assert np.array_equal(array, np.arange(2**21))
    assert array[-1] == 2**21 - 1
    assert allocator.allocated_bytes == array.nbytes
    assert allocator.mapped_bytes > 2 * 0.9 * array.nbytes  # written once, and read once at least
    assert open_files(tmp_path)
    del array  # the only reference to the map
    assert not open_files(tmp_path)


def test_other_mapped_files_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages are unmapped when 20 bytes more are resident than just after the last unmapping."""
    resident = iter([10, 10, 50, 47, 45, 46, 55, 64, 70, 46, 30, 49, 51, 30, 35])
    monkeypatch.setattr(file_allocator, "CHECK_SECONDS", 0)
    monkeypatch.setattr(file_allocator, "_shared_bytes", lambda: next(resident))
    allocator = FileAllocator(tmp_path, 20)
    with pytest.raises(StopIteration):
        allocator._watch_resident()
    # Unmapped at 50, and twice more, after which 45 remain; at 70, after which 46 remain; at 51, as 30 was the minimum
    # in between.
    assert (allocator.trims, allocator.mapped_bytes) == (3, 50 - 10 + 70 - 45 + 51 - 30)


def open_files(folder: Path) -> list[str]:
    """Files below a folder that this process has open; other threads close theirs meanwhile."""
    found = []
    for handle in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.append(os.readlink(f"/proc/self/fd/{handle}"))
    return [name for name in found if name.startswith(str(folder))]


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    with FileAllocator(tmp_path, 0) as allocator, pytest.raises(OutOfRoom, match=r"no space .*400 bytes of shards"):
        allocator.allocate(100, np.uint32)
    assert not list(tmp_path.iterdir())


def test_warm_shards_compiles_all(tmp_path: Path) -> None:
    """After `warm_shards` no kernel is compiled for another type, whatever the arrays come from."""
    script = """
import sys
import numpy as np
from pathlib import Path
from edgemill.kernels.cpu.shards import cut, endpoint_words, group, half_counts
from edgemill.kernels.cpu.shards import packets, removal, rounds, rows
from edgemill.tasks.shards import FileAllocator, warm_shards
from sharding import ordered, peel_in_groups
modules = (cut, endpoint_words, group, half_counts, packets, removal, rounds, rows)
def signatures():
    return {name: len(k.signatures) for m in modules for name, k in vars(m).items() if hasattr(k, "signatures")}
warm_shards(2)
before = signatures()
rng = np.random.default_rng(1)
graph = ordered(sorted({(min(a, b), max(a, b)) for a, b in rng.integers(0, 40, (300, 2)).tolist() if a != b}))
for array in (graph.low, graph.high, graph.support):
    array.flags.writeable = False
with FileAllocator(Path(sys.argv[1]), 0) as one, FileAllocator(Path(sys.argv[1]), 0) as two:
    stopped = peel_in_groups(graph, 4, 2, allocators=[one, two], stop=lambda: 0.0)
    peel_in_groups(graph, 4, 2, before=stopped)
peel_in_groups(graph, 3, 1)
assert before["run_round"] == 1 and signatures() == before, (before, signatures())
"""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([SUPPORT_PATH, os.environ.get("PYTHONPATH", "")])}
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=True, env=environment, timeout=280)
