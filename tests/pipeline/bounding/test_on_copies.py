"""Runs by the methods for study on several workers, each with a copy: exact, and certain intervals where a limit ends
them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from distributed import Client

import runs
import shard_faults
from edgemill.pipeline import Result, mine
from edgemill.pipeline.cluster.execution import Capacity
from edgemill.pipeline.inputs.input_object import open_input
from edgemill.pipeline.plan import choice as planning
from edgemill.pipeline.plan.choice import plan_run
from edgemill.pipeline.settings.sources import make_settings
from edgemill.tasks.verify.result import verify

QUIET: dict[str, Any] = {"device": "cpu", "output.report": False}
METHODS: list[dict[str, Any]] = [
    {"method": "band"},
    {"method": "fixpoint"},
    {"method": "fixpoint", "bounding.operator": "tridn"},
]


@pytest.fixture(autouse=True)
def _small_graphs_are_worth_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(planning, "LEAST_EDGES", 1)


@pytest.mark.parametrize("carrier", ["shared-memory", pytest.param("dask", marks=pytest.mark.slow)])
@pytest.mark.parametrize("how", METHODS, ids=str)
def test_as_by_peeling(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, how: dict[str, Any], carrier: Any
) -> None:
    result = mine(rows, tmp_path / "out", client=two_workers, carrier=carrier, **how, **QUIET)
    assert shard_faults.same(result, plain)
    manifest = result.manifest
    assert manifest.plan is not None
    assert "2 workers" in manifest.plan.reason and "bands" not in manifest.plan.reason
    assert (manifest.bounding.method, manifest.bounding.bands, manifest.bounding.shards) == (how["method"], None, None)
    done = manifest.exchanges
    assert manifest.bounding.exchanges == manifest.bounding.steps == len(done) > 3
    assert [own.exchange for own in done] == list(range(1, len(done) + 1))
    assert manifest.bounding.evaluations == sum(own.evaluations for own in done)
    assert sum(own.messages for own in done) > 0 < sum(own.bytes for own in done)
    settled = [own.settled for own in done]
    assert settled == sorted(settled) and settled[-1] == manifest.counts.edges
    shard_faults.assert_nothing_left(two_workers, manifest.run)


@pytest.mark.parametrize("limit", [{"max_exchanges": 2}, {"max_seconds": 1e-9}], ids=str)
@pytest.mark.parametrize("how", METHODS[:2], ids=str)
def test_a_limit(
    rows: Path, plain: Result, two_workers: Client, tmp_path: Path, how: dict[str, Any], limit: dict[str, Any]
) -> None:
    """All workers stop after the same iteration."""
    result = mine(rows, tmp_path / "out", client=two_workers, carrier="shared-memory", **how, **limit, **QUIET)
    assert not result.converged
    assert result.manifest.bounding.exchanges == limit.get("max_exchanges", 1)
    low, high = runs.column(result, "lambda_low"), runs.column(result, "lambda_high")
    assert all(low[edge] <= lam <= high[edge] for edge, lam in runs.column(plain, "lambda").items())
    assert result.manifest.unsettled == sum(low[edge] < high[edge] for edge in low) > 0
    assert verify(result.path).ok


@pytest.mark.parametrize("method", ["band", "fixpoint"])
def test_workers_of_a_plan(rows: Path, method: str) -> None:
    """As many as would peel bands, or one if one is asked for."""
    settings = make_settings(str(rows), "out", method=method)
    source = open_input(settings)
    plan = plan_run(settings, source, Capacity(3, 2, 0))
    assert (plan.partitions, plan.band_workers, plan.in_shards, plan.seconds) == (1, 3, False, None)
    alone = plan_run(make_settings(str(rows), "out", method=method, partitions=1), source, Capacity(3, 2, 0))
    assert (alone.partitions, alone.band_workers) == (1, 1)
