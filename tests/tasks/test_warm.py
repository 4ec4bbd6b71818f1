"""The warm-up run computes correct results, so it calls the kernels that a run calls."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import foreign
from edgemill import kernels
from edgemill.pipeline.stages.tiny_run import run_stages
from edgemill.tasks.device import MemorySpace
from edgemill.tasks.warm import CLIQUE, CLIQUES, run_clique

PLACES = ["cpu", "elsewhere", pytest.param("gpu", marks=pytest.mark.gpu)]


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("method", ["peel", "fixpoint", "band"])
def test_lambda_of_a_clique(method: str, place: str) -> None:
    if method == "band" and place != "cpu":
        pytest.skip("its filters run on the CPU")
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        found = run_clique(method, MemorySpace.HOST if place == "cpu" else MemorySpace.DEVICE)
        low = kernels.to_host(found.low).tolist()
    assert low == [CLIQUE - 2] * (CLIQUES * CLIQUE * (CLIQUE - 1) // 2)


@pytest.mark.gpu
@pytest.mark.parametrize("compact_rows", [False, True])
def test_lambda_of_a_whole_graph(compact_rows: bool) -> None:
    found = run_clique("peel", MemorySpace.DEVICE, whole=True, compact_rows=compact_rows)
    low = kernels.to_host(found.low).tolist()
    assert low == [CLIQUE - 2] * (CLIQUES * CLIQUE * (CLIQUE - 1) // 2)


@pytest.mark.parametrize("place", PLACES)
def test_edges_of_a_clique(place: str) -> None:
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        space = MemorySpace.HOST if place == "cpu" else MemorySpace.DEVICE
        assert run_stages(space) == CLIQUES * CLIQUE * (CLIQUE - 1) // 2
