"""Which memory a run's arrays take on a GPU where the process has chosen another than CuPy's pool for its own."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from edgemill.pipeline.calling import call

cupy: Any = pytest.importorskip("cupy", reason="the extras cu12 and cu13 bring CuPy")
gpu: Any = pytest.importorskip("edgemill.kernels.gpu")


class Resource:
    """A source of memory."""


class CudaMemoryResource(Resource):
    """The driver, asked each time."""


class PoolMemoryResource(Resource):
    """A pool."""


def rmm_cupy_allocator(size: int) -> Any:
    """As RMM gives it to CuPy."""
    raise MemoryError(f"{size} bytes where there is no GPU")


rmm_cupy_allocator.__module__ = "rmm.allocators.cupy"


def of_somebody(size: int) -> Any:
    """An allocator of the user's own."""
    raise MemoryError(f"{size} bytes where there is no GPU")


def chosen() -> Any:
    """What this thread's arrays are made with."""
    return cupy.cuda.get_allocator()


@pytest.fixture
def rmm(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """The package, with a source of memory that can be chosen."""
    source = SimpleNamespace(now=CudaMemoryResource())
    made: Any = ModuleType("rmm")
    made.mr = SimpleNamespace(CudaMemoryResource=CudaMemoryResource, get_current_device_resource=lambda: source.now)
    monkeypatch.setitem(sys.modules, "rmm", made)
    return source


@pytest.fixture
def choose() -> Iterator[Callable[[Any], None]]:
    """What all threads of the process take memory with from now on."""
    before = chosen()
    yield cupy.cuda.set_allocator
    cupy.cuda.set_allocator(before)


class Looking:
    """The search for a GPU: whether it has been asked for, and what it found."""

    def __init__(self, asked: bool, lack: str) -> None:
        self.asked, self.lack = asked, lack

    def __call__(self) -> Any:
        assert self.asked
        return SimpleNamespace(lack=self.lack)

    def cache_info(self) -> Any:
        return SimpleNamespace(currsize=int(self.asked))


device: Any = sys.modules["edgemill.kernels.device"]


@pytest.fixture
def with_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that has found a GPU."""
    monkeypatch.setattr(device, "device", Looking(True, ""))


def pool() -> Any:
    return cupy.get_default_memory_pool().malloc


@pytest.mark.parametrize("allocator", [rmm_cupy_allocator, None], ids=["RMM without a pool", "CuPy's pool turned off"])
def test_a_run_has_a_pool_and_the_process_what_it_chose(
    rmm: SimpleNamespace, choose: Callable[[Any], None], with_gpu: None, allocator: Any
) -> None:
    choose(allocator)
    before = chosen()
    with ThreadPoolExecutor(1) as other:
        assert call(lambda: (chosen(), other.submit(chosen).result()), 1, ()) == (pool(), before)
    assert chosen() == before
    with pytest.raises(ValueError, match="wrong"):
        call(_fail, 1, ())
    assert chosen() == before


def _fail() -> None:
    assert chosen() == pool()
    raise ValueError("wrong")


@pytest.mark.parametrize("allocator", [rmm_cupy_allocator, of_somebody, cupy.cuda.malloc_managed])
def test_what_is_no_detour_is_left(
    rmm: SimpleNamespace, choose: Callable[[Any], None], with_gpu: None, allocator: Any
) -> None:
    """A pool of RMM's, an allocator of the user's own, and memory that the driver moves to the host."""
    rmm.now = PoolMemoryResource()
    choose(allocator)
    assert call(chosen, 1, ()) == chosen() != pool()


@pytest.mark.parametrize("looking", [Looking(False, ""), Looking(True, "no CUDA driver")], ids=["on the CPU", "none"])
def test_without_a_gpu_nothing_is_asked(
    choose: Callable[[Any], None], monkeypatch: pytest.MonkeyPatch, looking: Looking
) -> None:
    choose(rmm_cupy_allocator)
    monkeypatch.setattr(device, "device", looking)
    monkeypatch.setattr(gpu, "own_memory", _fail)
    assert call(chosen, 1, ()) is rmm_cupy_allocator


@pytest.mark.parametrize(("allocator", "times"), [(rmm_cupy_allocator, 1), (None, 1), (pool(), 0)])
def test_the_pool_is_emptied_for_who_does_not_use_it(
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
    with pytest.raises(ValueError, match="wrong"), device.memory_given_back():
        raise ValueError("wrong")
    assert len(emptied) == times
