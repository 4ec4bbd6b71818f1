"""The state of a run from nothing: its order is that of the run's own peeling, where that was recorded."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from distributed import Client

from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate
from edgemill.tasks.storage.folders import Folder
from edgemill.tasks.update import state as states
from edgemill.tasks.update.order import find_violation, order_of
from edgemill.tasks.update.state import State, read_state


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Edges in four buckets, many of them without triangles."""
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder / "rmat"), files=2, seed=4, scale=11, edge_factor=6)
    return folder / "rmat"


def kept(result: Result) -> State:
    """The state of a result; it certifies the λ of the result."""
    state = read_state(Folder(str(Path(result.path) / "state")), result.manifest.run)
    table = result.edges.to_table()
    assert np.array_equal(state.order.lam, table["lambda"].to_numpy())
    assert find_violation(state.graph.edges, state.order) is None
    return state


def test_the_run_peels_once(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "order_of", None)  # would peel again
    monkeypatch.setattr("edgemill.pipeline.plan.plan.MIN_BUCKET_ROWS", 1000)
    result = mine(rows, tmp_path / "out", device="cpu", nightly={"incremental": "auto"})
    assert len(list((Path(result.path) / "edges").iterdir())) >= 4
    assert (result.edges.to_table()["support"].to_numpy() == 0).any()
    kept(result)


def test_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(states, "order_of", None)
    ends = [
        [chr(97 + end) for end in column] for column in zip(*((u, v) for v in range(9) for u in range(v)), strict=True)
    ]
    pq.write_table(pa.table(ends, names=["src", "dst"]), tmp_path / "names.parquet")
    result = mine(tmp_path / "names.parquet", tmp_path / "out", device="cpu", nightly={"incremental": "auto"})
    assert kept(result).order.lam.tolist() == [7] * 36


@pytest.mark.parametrize(
    "how",
    [
        pytest.param({"checkpoint": {"every_seconds": 0.0}}, id="peeling stopped for checkpoints"),
        pytest.param({"method": "fixpoint"}, id="no peeling"),
    ],
)
def test_other_runs_peel_again(
    rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: dict[str, Any]
) -> None:
    peeled = []

    def see(*arguments: Any) -> Any:
        peeled.append(1)
        return order_of(*arguments)

    monkeypatch.setattr(states, "order_of", see)
    kept(mine(rows, tmp_path / "out", device="cpu", nightly={"incremental": "auto"}, **how))
    assert peeled


def test_nothing_is_recorded_without_a_next_night(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.kernels.cpu.peeling.peel.RecordedPeeling", None)
    result = mine(rows, tmp_path / "out", device="cpu")
    assert not (Path(result.path) / "state").exists()


def test_workers_that_never_start_from_an_earlier_result_keep_no_state(
    rows: Path, tmp_path: Path, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("edgemill.kernels.cpu.peeling.peel.RecordedPeeling", None)
    result = mine(rows, tmp_path / "out", device="cpu", nightly={"incremental": "auto"}, client=client)
    assert not (Path(result.path) / "state").exists()
    again = mine(rows, tmp_path / "again", device="cpu", nightly={"previous": result.path}, client=client)
    assert again.manifest.update is not None and again.manifest.update.reason == "nothing has changed"


def test_runs_on_gpus_keep_no_state(rows: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("edgemill.pipeline.updating.eligibility.has_gpu_workers", lambda _: True)
    result = mine(rows, tmp_path / "out", nightly={"incremental": "auto"})
    assert not (Path(result.path) / "state").exists()
