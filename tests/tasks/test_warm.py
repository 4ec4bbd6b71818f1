"""The tiny run that warms a device finds what it should: else it would not call what a run calls."""

from __future__ import annotations

from contextlib import nullcontext

import pytest

import foreign
from edgemill import kernels
from edgemill.tasks.device import owned_to_device
from edgemill.tasks.warm import CLIQUE, CLIQUES, run_clique, run_ingest

METHODS = [("peel", 1), ("peel", 3), ("band", 1), ("band", 3), ("fixpoint", 1), ("fixpoint", 3)]


@pytest.mark.parametrize(("method", "partitions"), METHODS)
@pytest.mark.parametrize("place", ["cpu", "elsewhere", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_lambda_of_a_clique(method: str, partitions: int, place: str) -> None:
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        found = run_clique(method, partitions, (lambda owned: owned) if place == "cpu" else owned_to_device)
        low = [value for ends in found for value in kernels.to_host(ends.low).tolist()]
    assert low == [CLIQUE - 2] * (CLIQUES * CLIQUE * (CLIQUE - 1) // 2)


@pytest.mark.gpu
def test_lambda_of_a_clique_in_compact_rows() -> None:
    (found,) = run_clique("peel", 1, owned_to_device, compact_rows=True)
    low = kernels.to_host(found.low).tolist()
    assert low == [CLIQUE - 2] * (CLIQUES * CLIQUE * (CLIQUE - 1) // 2)


@pytest.mark.parametrize("place", ["cpu", "elsewhere", pytest.param("gpu", marks=pytest.mark.gpu)])
def test_edges_of_a_clique(place: str) -> None:
    with foreign.with_kernels() if place == "elsewhere" else nullcontext():
        put = {"cpu": kernels.to_host, "elsewhere": foreign.to_foreign, "gpu": kernels.to_device}[place]
        assert run_ingest(put) == CLIQUES * CLIQUE * (CLIQUE - 1) // 2
