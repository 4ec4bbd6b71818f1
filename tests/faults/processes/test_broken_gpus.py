"""Planted errors after which a process cannot use its GPU: the worker ends, and its tasks run again.

The errors are CuPy's. tests/pipeline/gpu/test_gpu.py has a kernel that writes to an invalid address.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import dask
import pytest
from distributed import Client

import runs
from edgemill.kernels.runtime.device import fatal_cuda_error
from edgemill.pipeline import ClusterLost, mine
from edgemill.pipeline.cluster.engine import Engine
from trials import Trials


def cuda_error(status: int) -> Exception:
    from cupy_backends.cuda.api.runtime import CUDARuntimeError

    error: Exception = CUDARuntimeError(status)
    return error


def failing(status: int) -> Callable[[str], int]:
    """A task that fails until it has written its file, or always without a file name."""

    def fail(file: str) -> int:  # in here, as workers cannot import this module
        from cupy_backends.cuda.api.runtime import CUDARuntimeError

        if not file or not os.path.exists(file):
            if file:
                with open(file, "w") as made:
                    made.write(str(os.getpid()))
            raise CUDARuntimeError(status)
        return os.getpid()

    return fail


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    patience = {"distributed.deploy.lost-worker-timeout": 300}  # as in clusters that runs start
    with dask.config.set(patience), runs.two_processes() as client:
        yield client


@pytest.mark.parametrize("status", [700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 214, 220])
def test_which_errors_break_a_process(status: int) -> None:
    error = cuda_error(status)
    assert fatal_cuda_error(error) is error
    try:
        try:
            raise error
        except RuntimeError as first:
            raise MemoryError("no mailbox") from first
    except MemoryError as second:
        assert fatal_cuda_error(second) is error


@pytest.mark.parametrize("error", [cuda_error(1), cuda_error(2), cuda_error(98), RuntimeError("no"), MemoryError()])
def test_which_do_not(error: Exception) -> None:
    assert fatal_cuda_error(error) is None
    assert fatal_cuda_error(ValueError("cudaErrorIllegalAddress is a name of an edge")) is None


@pytest.mark.parametrize("status", [700, 719])
def test_the_worker_is_replaced(client: Client, tmp_path: Path, trials: Trials, status: int) -> None:
    engine = Engine.connect(client, f"once-{status}")
    pid = engine.gather([engine.submit("fail", failing(status), str(tmp_path / "pid"))])[0]
    left = int((tmp_path / "pid").read_text())
    assert pid != left
    assert not os.path.exists(f"/proc/{left}")
    client.wait_for_workers(2, timeout=60)
    trials("a kernel breaks its GPU", "same")


def test_what_breaks_every_worker_ends(client: Client) -> None:
    engine = Engine.connect(client, "ever")
    with pytest.raises(
        ClusterLost,
        match=r"4.*CUDARuntimeError.*cudaErrorIllegalAddress.*cluster\.device=cpu",
    ):
        engine.gather([engine.submit("fail", failing(700), "")])
    client.wait_for_workers(2, timeout=60)


def test_where_a_task_runs_on_every_worker(client: Client, tmp_path: Path) -> None:
    """Its task is bound to the lost worker. All run again with its replacement."""
    engine = Engine.connect(client, "everywhere", waiting_seconds=1)
    pids = engine.on_every_worker(failing(700), str(tmp_path / "pid"))
    assert len(set(pids)) == 2
    assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


@pytest.mark.slow
def test_what_breaks_every_worker_where_it_runs_on_all(client: Client) -> None:
    engine = Engine.connect(client, "everywhere-ever", waiting_seconds=1)
    with pytest.raises(ClusterLost, match="every worker"):
        engine.on_every_worker(failing(700), "")
    client.wait_for_workers(2, timeout=60)


def test_other_errors_of_cuda_are_told(client: Client, tmp_path: Path) -> None:
    engine = Engine.connect(client, "told")
    with pytest.raises(RuntimeError, match="cudaErrorInvalidValue"):
        engine.gather([engine.submit("fail", failing(1), str(tmp_path / "pid"))])
    assert os.path.exists(f"/proc/{(tmp_path / 'pid').read_text()}")


def test_in_one_process_the_run_ends() -> None:
    with runs.cluster(n_workers=1, processes=False) as client:
        engine = Engine.connect(client, "here")
        with pytest.raises(ClusterLost, match=r"kernel.*\(cudaErrorLaunchFailure"):
            engine.gather([engine.submit("fail", failing(719), "")])


@pytest.mark.slow
def test_a_run_goes_on(rows: Path, tmp_path: Path, client: Client) -> None:
    """The first worker with the error in a search ends. Its replacement stays."""
    how: dict[str, Any] = {"device": "cpu", "method": "fixpoint"}
    left = tmp_path / "left"

    def plant(left: str) -> None:
        from cupy_backends.cuda.api.runtime import CUDARuntimeError

        from edgemill import kernels

        sound = kernels.fixpoint

        def fixpoint(*arguments: Any) -> Any:
            try:
                with open(left, "x") as file:
                    file.write(str(os.getpid()))
            except FileExistsError:
                return sound(*arguments)
            raise CUDARuntimeError(700)

        vars(kernels)["fixpoint"] = fixpoint

    client.wait_for_workers(2, timeout=60)
    client.run(plant, str(left))
    result = mine(rows, tmp_path / "out", client=client, **how)
    assert not os.path.exists(f"/proc/{left.read_text()}")
    assert result.edges.to_table() == mine(rows, tmp_path / "plain", **how).edges.to_table()
