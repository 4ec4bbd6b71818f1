"""A cluster of several hosts over TLS, as users start it: a scheduler, two workers and the command on separate hosts.

One worker is cut off during a run: its connections stay open without messages.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest

from certificates import Certificate, certificate
from edgemill.pipeline import Result, mine
from hosts import Host, hosts, namespaces
from processes import DASK, EDGEMILL, ended, started
from trials import Trials

SOON = {
    "DASK_DISTRIBUTED__COMM__TIMEOUTS__TCP": "11s",
    "DASK_DISTRIBUTED__COMM__REQUIRE_ENCRYPTION": "true",
}
"""Dask's own limit on silence, 30 s, as short as it may be."""
STRIKING = """
import itertools, subprocess, sys
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

emit, told = Events.emit, itertools.count(1)
at, words = int(sys.argv.pop(1)), sys.argv.pop(1).split()

def strike(self, event, /, **fields):
    emit(self, event, **fields)
    if event == "task_done" and next(told) == at:
        subprocess.run(words, check=True)

Events.emit = strike
edgemill(sys.argv[1:])
"""
"""The command, which runs another after some finished tasks."""
HOW = ["--partitions", "4", "--device", "cpu"]
HOW += ["--set", "cluster.least_workers=2", "--set", "cluster.waiting_seconds=60"]
STRIKE_AT = 8


@dataclass(frozen=True)
class Network:
    """Processes and their hosts."""

    scheduler: Host
    workers: list[Host]
    client: Host
    scheduler_file: Path
    certificate: Certificate
    log: Path
    """Of the scheduler."""

    @property
    def address(self) -> str:
        """Address of the scheduler."""
        return f"tls://{self.scheduler.address}:8786"

    @property
    def settings(self) -> list[str]:
        """The certificates, as arguments of the command."""
        return [
            word for name, file in self.certificate._asdict().items() for word in ("--set", f"cluster.{name}={file}")
        ]


@pytest.fixture
def network(tmp_path: Path) -> Iterator[Network]:
    """A scheduler and two workers on separate hosts, and a host without processes."""
    own = certificate(tmp_path, "cluster")
    tls = ["--tls-ca-file", own.tls_ca_file, "--tls-cert", own.tls_cert_file, "--tls-key", own.tls_key_file]
    file, folder = tmp_path / "scheduler.json", tmp_path / "logs"
    folder.mkdir()
    with hosts(["scheduler", "one", "two", "client"]) as made, ExitStack() as running:
        scheduler, one, two, client = made
        there = [
            *scheduler.inside,
            *DASK,
            "scheduler",
            "--protocol",
            "tls",
            "--host",
            scheduler.address,
            "--port",
            "8786",
        ]
        there += ["--scheduler-file", str(file), "--no-dashboard", *tls]
        running.enter_context(started(folder / "scheduler", *there, **SOON))
        for name, host in (("one", one), ("two", two)):
            words = [*host.inside, *DASK, "worker", f"tls://{scheduler.address}:8786", "--name", name, "--no-dashboard"]
            words += ["--nthreads", "1", "--local-directory", str(tmp_path / name), *tls]
            words += ["--preload", "edgemill.pipeline.preload"]
            running.enter_context(started(folder / name, *words, **SOON))
        yield Network(scheduler, [one, two], client, file, own, folder / "scheduler")
        left = [host.namespace for host in made]
    assert not [name for name in left if name in namespaces()]


@pytest.mark.slow
def test_a_worker_host_is_cut_off(rows: Path, tmp_path: Path, network: Network, trials: Trials) -> None:
    """The worker is cut off in the second of two runs. The first run finds the scheduler by its file."""
    plain = mine(rows, tmp_path / "plain", partitions=4, device="cpu")
    words = ["run", "--input", str(rows), *HOW, *network.settings]
    first = ["--output", str(tmp_path / "first"), "--scheduler-file", str(network.scheduler_file)]
    done = ended(*network.client.inside, *EDGEMILL, *words, *first, **SOON)
    assert done.returncode == 0, done.stderr
    assert same(Result(tmp_path / "first"), plain)

    lost = network.workers[1]
    strike = [sys.executable, "-c", STRIKING, str(STRIKE_AT), " ".join(lost.link("down"))]
    second = ["--output", str(tmp_path / "second"), "--scheduler", network.address]
    done = ended(*network.client.inside, *strike, *words, *second, **SOON)
    assert done.returncode == 0, done.stderr
    assert f"Remove worker addr: tls://{lost.address}:" in network.log.read_text()
    assert same(Result(tmp_path / "second"), plain)
    trials("a worker's host is cut off from the network", "same")


def same(result: Result, plain: Result) -> bool:
    """Whether the tables of two runs are equal."""
    return bool(
        result.edges.to_table() == plain.edges.to_table() and result.vertices.to_table() == plain.vertices.to_table()
    )
