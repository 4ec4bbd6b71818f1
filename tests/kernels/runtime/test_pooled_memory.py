"""The source of a run's GPU arrays in a process that has chosen another allocator than CuPy's pool."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edgemill.pipeline.cluster.task_calls import TaskCall
from edgemill.pipeline.cluster.versions import installed_version

cupy: Any = pytest.importorskip("cupy", reason="the extras cu12 and cu13 bring CuPy")
gpu: Any = pytest.importorskip("edgemill.kernels.gpu")


class Resource:
    """Stand-in for a memory resource of RMM."""


class CudaMemoryResource(Resource):
    """Each allocation is a call of the driver."""


class PoolMemoryResource(Resource):
    """Allocations come from a pool."""


def rmm_cupy_allocator(size: int) -> Any:
    """The allocator that RMM installs in CuPy."""
    raise MemoryError(f"{size} bytes where there is no GPU")


rmm_cupy_allocator.__module__ = "rmm.allocators.cupy"


def users_allocator(size: int) -> Any:
    """An allocator of the user's own."""
    raise MemoryError(f"{size} bytes where there is no GPU")


def chosen() -> Any:
    """The allocator of this thread."""
    return cupy.cuda.get_allocator()


@pytest.fixture
def rmm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """A stand-in for the package RMM, with a memory resource that a test can choose."""
    source = SimpleNamespace(now=CudaMemoryResource())
    made: Any = ModuleType("rmm")
    made.mr = SimpleNamespace(CudaMemoryResource=CudaMemoryResource, get_current_device_resource=lambda: source.now)
    monkeypatch.setitem(sys.modules, "rmm", made)
    return source


@pytest.fixture
def choose() -> Iterator[Callable[[Any], None]]:
    """Sets the allocator of all threads of the process."""
    before = chosen()
    yield cupy.cuda.set_allocator
    cupy.cuda.set_allocator(before)


class DeviceCall:
    """A stand-in for `device`: whether it has been called, and its result."""

    def __init__(self, called: bool, missing: str) -> None:
        self.called, self.missing = called, missing

    def __call__(self) -> Any:
        assert self.called
        return SimpleNamespace(missing=self.missing)

    def cache_info(self) -> Any:
        return SimpleNamespace(currsize=int(self.called))


device: Any = sys.modules["edgemill.kernels.runtime.device"]


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has found a GPU."""
    monkeypatch.setattr(device, "device", DeviceCall(True, ""))


@pytest.fixture(autouse=True)
def without_a_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tasks are called here outside of a worker, whose threads Arrow would get."""
    monkeypatch.setattr("edgemill.pipeline.cluster.task_calls.use_arrow_threads", lambda: None)


def call(function: Callable[[], Any]) -> Any:
    return TaskCall(installed_version(), function, kernel_threads=1)(())


def pool() -> Any:
    return cupy.get_default_memory_pool().malloc


@pytest.mark.parametrize("allocator", [rmm_cupy_allocator, None], ids=["RMM without a pool", "CuPy's pool turned off"])
def test_a_run_uses_a_pool_and_the_process_its_own_allocator(
    rmm: SimpleNamespace, choose: Callable[[Any], None], with_gpu: None, allocator: Any
) -> None:
    choose(allocator)
    before = chosen()
    with ThreadPoolExecutor(1) as other:
        assert call(lambda: (chosen(), other.submit(chosen).result())) == (pool(), before)
    assert chosen() == before
    with pytest.raises(ValueError, match="wrong"):
        call(_fail)
    assert chosen() == before


def _fail() -> None:
    assert chosen() == pool()
    raise ValueError("wrong")


@pytest.mark.parametrize("allocator", [rmm_cupy_allocator, users_allocator, cupy.cuda.malloc_managed])
def test_other_allocators_are_kept(
    rmm: SimpleNamespace, choose: Callable[[Any], None], with_gpu: None, allocator: Any
) -> None:
    """A pool of RMM, an allocator of the user's own, and managed memory."""
    rmm.now = PoolMemoryResource()
    choose(allocator)
    assert call(chosen) == chosen() != pool()


@pytest.mark.parametrize(
    "call_of_device", [DeviceCall(False, ""), DeviceCall(True, "no CUDA driver")], ids=["on the CPU", "none"]
)
def test_without_a_gpu_the_allocator_is_kept(
    choose: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch, call_of_device: DeviceCall
) -> None:
    choose(rmm_cupy_allocator)
    monkeypatch.setattr(device, "device", call_of_device)
    monkeypatch.setattr("edgemill.kernels.gpu.runtime.memory.pooled_memory", _fail)
    assert call(chosen) is rmm_cupy_allocator


@pytest.mark.parametrize(("allocator", "times"), [(rmm_cupy_allocator, 1), (None, 1), (pool(), 0)])
def test_the_pool_is_emptied_if_the_process_does_not_use_it(
    rmm: SimpleNamespace,
    choose: Callable[[Any], None],
    with_gpu: None,
    monkeypatch: pytest.MonkeyPatch,
    allocator: Any,
    times: int,
) -> None:
    emptied: list[bool] = []
    choose(allocator)
    stand_in = SimpleNamespace(free_all_blocks=lambda: emptied.append(True), malloc=pool())
    monkeypatch.setattr(cupy, "get_default_memory_pool", lambda: stand_in)
    with pytest.raises(ValueError, match="wrong"), device.releasing_pool():
        raise ValueError("wrong")
    assert len(emptied) == times
