"""The job script of SLURM on a real SLURM of three nodes: to its end, requeued, cancelled, and with nodes that die."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from distributed import Client

from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate
from trials import Trials

SCRIPT = Path(__file__).resolve().parent.parent.parent / "configs" / "slurm" / "edgemill.sbatch"
HOW = ["--method", "band", "--device", "cpu", "--set", "output.report=false"]
WITHOUT_REPORT: dict[str, Any] = {"output.report": False}
KEEPS = ["--set", "checkpoint.every_exchanges=1"]
PAUSE_AT = 8
PAUSING = f"""#!{sys.executable}
# edgemill, but the first run waits at exchange {PAUSE_AT} until the file of $PAUSE is there.
import os, sys, time
from pathlib import Path
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

exchange, goes_on = Events.exchange, Path(os.environ["PAUSE"])

def pause(self, record):
    exchange(self, record)
    if record.exchange == {PAUSE_AT} and not goes_on.exists():
        goes_on.with_suffix(".reached").touch()
        while not goes_on.exists():
            time.sleep(0.05)

Events.exchange = pause
edgemill(sys.argv[1:])
"""


def until(what: str, holds: Callable[[], bool], seconds: float = 240) -> None:
    """Wait until it holds; fails after so many seconds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, f"not so after {seconds} s: {what}"
        time.sleep(0.1)


class Job:
    """A job of the script, submitted from a folder of its own."""

    def __init__(self, slurm: Slurm, folder: Path, *options: str, arguments: list[str], pausing: bool = False) -> None:
        self.slurm, self.folder, self.out = slurm, folder, folder / "out"
        self.goes_on = folder / "goes_on"
        environment = dict(slurm.environment)
        if pausing:
            commands = folder / "commands"
            commands.mkdir(exist_ok=True)
            (commands / "edgemill").write_text(PAUSING)
            (commands / "edgemill").chmod(0o755)
            environment |= {"PATH": f"{commands}:{environment['PATH']}", "PAUSE": str(self.goes_on)}
        words = ["sbatch", "--parsable", "--nodes=2", "--cpus-per-task=1", *options, str(SCRIPT), *arguments]
        done = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True, check=True)
        self.id = done.stdout.strip()

    def __getitem__(self, name: str) -> str:
        found = re.search(rf"\b{name}=(\S*)", self.slurm.run("scontrol", "show", "job", "--oneliner", self.id))
        assert found, name
        return found[1]

    @property
    def log(self) -> str:
        path = self.folder / f"edgemill-{self.id}.log"
        return path.read_text() if path.exists() else ""

    def wait_for_pause(self) -> None:
        """Until the run stands in the middle of its search, and has kept it."""
        until("the run pauses", self.goes_on.with_suffix(".reached").exists)
        until("progress is kept", (self.folder / ".out.edgemill.checkpoint" / "progress.json").exists)

    def ended(self, seconds: float = 400) -> tuple[str, str]:
        """State and exit code, once no start follows."""
        until("the job ends", lambda: self["JobState"] in ENDS, seconds)
        return self["JobState"], self["ExitCode"].partition(":")[0]

    def assert_clean(self) -> None:
        """No folder of any start is left where it was submitted."""
        assert list(self.folder.glob(".edgemill-*")) == []


ENDS = ("COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "NODE_FAIL")


class Slurm:
    """The commands of one SLURM."""

    def __init__(self, values: Mapping[str, str]) -> None:
        self.pids = Path(values["PIDS"])
        commands = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        self.environment = {**os.environ, "SLURM_CONF": values["SLURM_CONF"], "PATH": commands}

    def run(self, *words: str) -> str:
        """What a command prints."""
        return subprocess.run(words, env=self.environment, capture_output=True, text=True, check=True).stdout

    def state(self, node: str) -> str:
        """Of a node, as sinfo has it."""
        return self.run("sinfo", "--noheader", f"--nodes={node}", "--format=%T").strip()

    def kill(self, node: str) -> None:
        """End a node as if its power went: its daemon first, then all that runs on it."""
        daemon = psutil.Process(int((self.pids / node).read_text()))
        daemon.kill()
        daemon.wait()
        found = set()
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get("SLURMD_NODENAME") == node:
                    found.add(process)
                    found |= {above for above in process.parents() if above.name().startswith("slurmstepd")}
        for process in sorted(found, key=lambda one: one.name() != "slurmstepd"):
            with suppress(psutil.NoSuchProcess):
                process.send_signal(signal.SIGKILL)

    def start(self, node: str) -> None:
        """Start the daemon of a node that was killed."""
        self.run("slurmd", "-f", self.environment["SLURM_CONF"], "-N", node)
        until(f"{node} is idle", lambda: self.state(node) == "idle", 60)


@pytest.fixture(scope="module")
def slurm(system: Callable[[str], Mapping[str, str]]) -> Slurm:
    return Slurm(system("slurm"))


@pytest.fixture(scope="module")
def rows(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("rows")
    generate("rmat", str(folder), files=2, seed=4, scale=10, edge_factor=8)
    return folder


@pytest.fixture(scope="module")
def plain(rows: Path, tmp_path_factory: pytest.TempPathFactory) -> Result:
    """Of a run that nothing happened to, without SLURM."""
    out = tmp_path_factory.mktemp("plain") / "out"
    return mine(rows, out, method="band", device="cpu", **WITHOUT_REPORT)


@pytest.fixture
def submit(slurm: Slurm, rows: Path, tmp_path: Path) -> Iterator[Callable[..., Job]]:
    jobs = []

    def submitted(*options: str, pausing: bool = False, more: list[str] | None = None) -> Job:
        arguments = ["--input", str(rows), "--output", str(tmp_path / "out"), *HOW, *(more or [])]
        jobs.append(Job(slurm, tmp_path, *options, arguments=arguments, pausing=pausing))
        return jobs[-1]

    yield submitted
    for job in jobs:
        slurm.run("scancel", "--quiet", job.id)
        until("the job is gone", lambda: job["JobState"] in ENDS, 60)  # noqa: B023 — called at once


def assert_same(job: Job, plain: Result) -> None:
    result = Result(job.out)
    assert result.edges.to_table() == plain.edges.to_table(), job.log
    assert result.vertices.to_table() == plain.vertices.to_table()


def assert_went_on(job: Job) -> None:
    """From the checkpoint: the result's log begins with it."""
    assert '"stage": "restore"' in (job.out / "log.jsonl").read_text()


def test_a_job_to_its_end(submit: Callable[..., Job], plain: Result, trials: Trials) -> None:
    job = submit()
    assert job.ended() == ("COMPLETED", "0"), job.log
    assert_same(job, plain)
    lines = job.log.splitlines()
    assert ["output", str(job.out)] in [line.split() for line in lines]
    assert lines[-1].split()[:2] == ["edgemill", "explore"], job.log  # the last of the commands to go on with
    for word in ("CANCELLED", "Killed", "forcing job termination"):
        assert word not in job.log
    job.assert_clean()
    trials("SLURM: a job to its end", "same")


def test_an_input_that_is_not_there(submit: Callable[..., Job], tmp_path: Path, trials: Trials) -> None:
    job = submit(more=["--input", str(tmp_path / "absent")])
    assert job.ended() == ("FAILED", "3"), job.log
    assert job["Restarts"] == "0"
    assert job.log.splitlines()[-1] == "edgemill run ended with exit code 3"
    job.assert_clean()
    trials("SLURM: a job whose input is not there", "refused")


def test_the_signal_before_the_time_limit(
    slurm: Slurm, submit: Callable[..., Job], plain: Result, trials: Trials
) -> None:
    job = submit(pausing=True, more=KEEPS)
    job.wait_for_pause()
    slurm.run("scancel", "--batch", "--signal=USR1", job.id)
    until("the job is in the queue again", lambda: job["Restarts"] == "1")
    until("its first start has ended", lambda: job["JobState"] == "PENDING")
    job.assert_clean()
    job.goes_on.touch()
    assert job.ended() == ("COMPLETED", "0"), job.log
    assert_same(job, plain)
    assert_went_on(job)
    job.assert_clean()
    trials("SLURM: a job ended by USR1 goes back into the queue and on from its checkpoint", "same")


def test_requeued_by_hand(slurm: Slurm, submit: Callable[..., Job], plain: Result, trials: Trials) -> None:
    job = submit(pausing=True, more=KEEPS)
    job.wait_for_pause()
    slurm.run("scontrol", "requeue", job.id)
    job.goes_on.touch()
    until("the job starts again", lambda: job["Restarts"] == "1")
    assert job.ended() == ("COMPLETED", "0"), job.log
    assert_same(job, plain)
    assert_went_on(job)
    job.assert_clean()
    trials("SLURM: a job requeued by hand goes on from its checkpoint", "same")


def test_cancelled(slurm: Slurm, submit: Callable[..., Job], plain: Result, trials: Trials) -> None:
    job = submit(pausing=True, more=KEEPS)
    job.wait_for_pause()
    slurm.run("scancel", job.id)
    assert job.ended()[0] == "CANCELLED"
    until("its processes have ended", lambda: job.id not in slurm.run("squeue", "--noheader", "--format=%i").split())
    assert job["Restarts"] == "0"
    assert not job.out.exists()
    job.assert_clean()
    following = submit(more=KEEPS)
    assert following.ended() == ("COMPLETED", "0"), following.log
    assert_same(following, plain)
    assert_went_on(following)
    trials("SLURM: a job is cancelled, and another goes on from its checkpoint", "same")


def test_a_time_limit_before_the_first_checkpoint(submit: Callable[..., Job], trials: Trials) -> None:
    """SLURM itself sends USR1, up to a minute early; each start is ended before it has kept anything."""
    job = submit("--time=2", "--signal=B:USR1@60", pausing=True)
    assert job.ended() == ("FAILED", "143"), job.log
    assert job["Restarts"] == "1"
    assert "two starts of job" in job.log
    assert "ended before edgemill reached a checkpoint" in job.log
    assert not job.out.exists()
    job.assert_clean()
    trials("SLURM: two starts end before a checkpoint", "refused")


@pytest.mark.parametrize("first", [False, True])
def test_a_node_dies(slurm: Slurm, submit: Callable[..., Job], plain: Result, trials: Trials, first: bool) -> None:
    """The `first` has script, scheduler and run, the other a worker: SLURM puts the job back, and others take it."""
    job = submit(pausing=True, more=KEEPS)
    job.wait_for_pause()
    host = job["BatchHost"]
    node = host if first else "node1" if host == "node2" else "node2"
    slurm.kill(node)
    try:
        until("the job is in the queue again", lambda: job["Restarts"] == "1")
        assert slurm.state(node).startswith("down")
        job.goes_on.touch()
        assert job.ended() == ("COMPLETED", "0"), job.log
    finally:
        slurm.start(node)
    assert_same(job, plain)
    assert_went_on(job)
    job.assert_clean()
    trials(f"SLURM: a node with {'the run' if first else 'a worker'} dies", "same")


def test_workers_as_jobs(
    slurm: Slurm, rows: Path, plain: Result, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, trials: Trials
) -> None:
    """`SLURMCluster` of dask-jobqueue."""
    from dask_jobqueue import SLURMCluster

    for name in ("SLURM_CONF", "PATH"):
        monkeypatch.setenv(name, slurm.environment[name])
    with (
        SLURMCluster(
            cores=1,
            processes=1,
            memory="2GiB",
            walltime="00:10:00",
            local_directory=str(tmp_path / "scratch"),
            log_directory=str(tmp_path / "logs"),
            scheduler_options={"dashboard_address": "127.0.0.1:0"},
            worker_extra_args=["--preload", "edgemill.pipeline.preload"],
        ) as cluster,
        Client(cluster) as client,
    ):
        cluster.scale(jobs=2)
        client.wait_for_workers(2, timeout=200)
        out = tmp_path / "out"
        result = mine(rows, out, client=client, partitions=3, **WITHOUT_REPORT)
    assert result.edges.to_table() == plain.edges.to_table()
    assert result.vertices.to_table() == plain.vertices.to_table()
    trials("SLURM: workers as jobs of dask-jobqueue", "same")
