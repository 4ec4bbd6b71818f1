"""The carrier that leaves content in GPU memory, between threads and between processes that share a GPU."""

from __future__ import annotations

import tempfile
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import carrying
from edgemill.kernels.gpu_shards import Address
from edgemill.tasks.shards import MemoryCarrier

pytestmark = pytest.mark.gpu


def of_threads(groups: int) -> list[list[bool]]:
    with ThreadPoolExecutor(groups) as pool:
        return list(pool.map(carrying.gpu_talk, MemoryCarrier.open(groups)))


@pytest.mark.parametrize("groups", [1, 2, 3])
def test_threads(groups: int) -> None:
    found = of_threads(groups)
    assert all(all(own) for own in found)
    assert sum(map(len, found)) > 5 * groups


def test_processes() -> None:
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        carrying.processes(carrying.gpu_talks, [folder], 2) as two,
    ):
        found = [two.told(rank) for rank in range(2)]
    assert all(all(own) for own in found)
    assert all(len(own) > 5 for own in found)


def test_content_travels_through_the_host_where_memory_cannot_be_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    """In all groups, also if only one of them cannot."""

    def unreachable(address: Address) -> Any:
        raise ConnectionError("the memory of another process's GPU cannot be reached")

    monkeypatch.setattr("edgemill.kernels.gpu.shards.shared_memory.reach", unreachable)
    found = of_threads(2)
    assert found
    assert not any(map(any, found))
