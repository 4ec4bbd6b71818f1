"""Which kernels the workers of a run with GPUs compile or load."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from edgemill.pipeline.cluster.workers.gpu_kernels import Needed, is_prepared, prepare, run_cliques
from edgemill.pipeline.run import warming
from edgemill.tasks.warm import load_packing


class Workers:
    """Records the tasks that two workers get. One of them has compiled nothing if `compiled` is false."""

    def __init__(self, compiled: bool) -> None:
        self.capacity = SimpleNamespace(threads=4)
        self.compiled = compiled
        self.called: list[Any] = []

    def on_every_worker(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        self.called.append(function)
        return [True, self.compiled]

    def leave_to_workers(self, name: str, function: Callable[..., Any], needed: Needed) -> None:
        assert needed.method == "peel"  # otherwise the task fails, and nothing tells
        self.called.append(function)


@pytest.mark.parametrize("finds_lambda", [True, False])
@pytest.mark.parametrize("partitions", [1, 2])
def test_compiled_kernels_are_loaded_as_the_run_needs_them(finds_lambda: bool, partitions: int) -> None:
    plan: Any = SimpleNamespace(
        finds_lambda=finds_lambda,
        method="peel",
        partitions=partitions,
        is_whole=partitions == 1,
        compact_rows=False,
        ingest_on_device=True,
        source=SimpleNamespace(kind="integer"),
    )
    first: Any = Workers(compiled=False)
    warming._warm_gpus(first, plan)
    assert first.called == [is_prepared, prepare]
    later: Any = Workers(compiled=True)
    assert warming._warm_gpus(later, plan) == []
    assert later.called == [is_prepared, load_packing, *[run_cliques] * (finds_lambda and partitions == 1)]
