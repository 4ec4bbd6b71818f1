"""The image cpu and the cluster of compose.yaml, on Docker itself."""

from __future__ import annotations

import json
import shlex
import subprocess
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from containers import compose
from edgemill.pipeline import Result
from trials import Trials

IMAGE = "edgemill:cpu"
FACEBOOK = "tests/graphs/facebook_combined.parquet"


@dataclass(frozen=True)
class Docker:
    """Runs commands where dockerd runs. The checkout has the same path there."""

    enter: tuple[str, ...]
    root: Path
    checkout: Path

    def popen(self, *command: str | Path) -> subprocess.Popen[str]:
        pipe = subprocess.PIPE
        return subprocess.Popen([*self.enter, *command], stdout=pipe, stderr=subprocess.STDOUT, text=True)

    def run(self, *command: str | Path) -> str:
        """The output, both streams of it; the command must succeed."""
        process = self.popen(*command)
        output, _ = process.communicate()
        assert process.returncode == 0, output
        return output

    def compose(self, *arguments: str, override: Path | None = None) -> tuple[str | Path, ...]:
        files = [self.checkout / "docker" / "compose.yaml", *([override] if override else [])]
        return ("docker", "compose", *(word for file in files for word in ("--file", file)), *arguments)

    def volume(self, name: str) -> Path:
        """A volume of the Compose project, as a folder of this machine."""
        return self.root / "var/lib/docker/volumes" / f"edgemill_{name}" / "_data"

    def containers(self, service: str) -> list[str]:
        return self.run(*self.compose("ps", "--quiet", service)).split()


@pytest.fixture(scope="module")
def docker(system: Callable[[str], Mapping[str, str]]) -> Docker:
    """Docker with the image, built by the Dockerfile on the base that up.sh made."""
    started = system("docker")
    engine = Docker(tuple(shlex.split(started["ENTER"])), Path(started["ROOT"]), Path(started["CHECKOUT"]))
    base = ("--build-context", "python=docker-image://edgemill-base:latest")
    dockerfile = engine.checkout / "docker" / "Dockerfile"
    engine.run("docker", "build", *base, "--file", dockerfile, "--target", "cpu", "--tag", IMAGE, engine.checkout)
    return engine


@pytest.fixture
def project(docker: Docker) -> Iterator[Docker]:
    """No container and no volume of the Compose project, before and after."""
    docker.run(*docker.compose("down", "--volumes"))
    yield docker
    docker.run(*docker.compose("down", "--volumes"))


def check(folder: Path) -> Result:
    """The published answer of ego-Facebook, and its counts."""
    result = Result(folder)
    counts = result.manifest.counts
    assert (counts.edges, counts.vertices, counts.triangles) == (88_234, 4_039, 1_612_010)
    assert result.manifest.lam is not None and result.manifest.lam.max == 95
    assert result.dn_graphs.count_rows() == 7
    return result


def events(log: Path, name: str) -> list[dict[str, Any]]:
    return [event for event in map(json.loads, log.read_text().splitlines()) if event["event"] == name]


def test_a_fresh_container_compiles_no_kernel(docker: Docker, trials: Trials) -> None:
    """As any user, on a root filesystem that cannot be written to, with no volume for kernels."""
    results = docker.root / "results"
    results.mkdir(exist_ok=True)
    results.chmod(0o777)
    graph = docker.checkout / FACEBOOK
    for user in ("10001:10001", "4711:4711"):
        name = user.partition(":")[0]
        folders = ("--tmpfs", "/tmp:mode=1777", "--tmpfs", "/scratch:mode=1777")
        limits = ("--read-only", *folders, "--user", user, "--network", "none")
        volumes = ("--volume", f"{graph}:/edges.parquet:ro", "--volume", "/results:/results")
        docker.run(
            "docker", "run", "--rm", *limits, *volumes, IMAGE, "run", "--input", "/edges.parquet", "--output", name
        )
        check(results / name)
        [kernels] = events(results / name / "log.jsonl", "kernels")
        assert kernels["compiled"] == 0
        trials("Docker: a fresh container compiles no kernel", "same")


def test_compose_from_up_to_down(project: Docker, trials: Trials) -> None:
    project.run(*project.compose("up", "--detach", "--wait"))  # until all are well
    assert len(project.containers("worker")) == int(compose("compose.yaml")["services"]["worker"]["deploy"]["replicas"])
    project.run(*project.compose("run", "--rm", "job"))
    check(project.volume("results") / "facebook")
    assert "nothing to do" in project.run(*project.compose("run", "--rm", "job"))
    assert {path.stat().st_mode & 0o777 for path in project.volume("certificates").iterdir()} == {0o600}
    assert not [*project.volume("kernels").rglob("*.nbc")], "a worker compiled kernels"
    project.run(*project.compose("down"))
    check(project.volume("results") / "facebook")  # kept
    assert project.run("docker", "ps", "--all", "--quiet") == ""
    trials("Docker: Compose from up to down", "same")


def test_a_job_starts_beside_workers_that_are_not_well(project: Docker, trials: Trials) -> None:
    override = project.root / "unwell.yaml"
    check_fails = 'healthcheck: { test: ["CMD", "false"], interval: 1s, retries: 1, start_period: 1s }'
    override.write_text(f"services:\n  worker:\n    {check_fails}\n")
    inside = Path("/unwell.yaml")
    project.run(*project.compose("run", "--rm", "job", override=inside))
    check(project.volume("results") / "facebook")
    states = [
        project.run("docker", "inspect", "--format", "{{.State.Health.Status}}", name)
        for name in project.containers("worker")
    ]
    assert "unhealthy\n" in states
    trials("Docker: workers fail their health check", "same")


@pytest.mark.parametrize("stage", ["read", "partition", "triangulate"])
def test_a_worker_is_killed(project: Docker, stage: str, trials: Trials) -> None:
    """When the driver says that a stage has ended, and the next has begun."""
    project.run(*project.compose("up", "--detach", "--wait"))
    victim = project.containers("worker")[0]
    job = project.popen(*project.compose("run", "--rm", "job"))
    assert job.stdout is not None
    shown = []
    for line in job.stdout:
        shown.append(line)
        if line.startswith(f"{stage}: "):
            project.run("docker", "kill", victim)
    assert job.wait() == 0, "".join(shown)
    assert any(line.startswith(f"{stage}: ") for line in shown)
    result = check(project.volume("results") / "facebook")
    alone = project.root / "results" / "alone"
    if not alone.exists():
        alone.parent.mkdir(exist_ok=True)
        alone.parent.chmod(0o777)
        volumes = ("--volume", f"{project.checkout / FACEBOOK}:/edges.parquet:ro", "--volume", "/results:/results")
        project.run("docker", "run", "--rm", *volumes, IMAGE, "run", "--input", "/edges.parquet", "--output", "alone")
    order = [("src", "ascending"), ("dst", "ascending")]
    killed, whole = (pq.read_table(path / "edges").sort_by(order) for path in (result.path, alone))
    assert killed.equals(whole)
    trials("Docker: a worker is killed", "same")


def test_a_client_by_pip_joins(project: Docker, trials: Trials) -> None:
    """With the constraints, outside of the containers; it sees the folders under the workers' paths."""
    project.run(*project.compose("up", "--detach", "--wait"))
    [scheduler] = project.containers("scheduler")
    address = project.run(
        "docker", "inspect", "--format", "{{range .NetworkSettings.Networks}}{{.IPAddress}}{{end}}", scheduler
    ).strip()
    service = compose("compose.yaml")["services"]["job"]
    settings = " ".join(shlex.quote(f"{key}={value}") for key, value in service["environment"].items())
    script = f"""
    set -eu
    mkdir -p /client/source /certificates /input /results
    cd {project.checkout}
    cp -r LICENSE README.md pyproject.toml package kernels tasks pipeline docker /client/source
    python3 -m venv /client/venv
    export PIP_CERT=/etc/ssl/certs/ca-certificates.crt
    /client/venv/bin/pip install --quiet --constraint docker/constraints.txt /client/source
    for name in certificates results; do mount --bind /var/lib/docker/volumes/edgemill_$name/_data /$name; done
    mount --bind {project.checkout}/tests/graphs /input
    cd /results
    exec env {settings} HOME=/client/home setpriv --reuid 10001 --regid 10001 --clear-groups \\
        /client/venv/bin/edgemill run --scheduler tls://{address}:8786 --set cluster.least_workers=2 \\
        --input /input/facebook_combined.parquet --output /results/client
    """
    try:
        project.run("unshare", "--mount", "bash", "-c", script)
        check(project.volume("results") / "client")
    finally:
        project.run("rm", "-rf", "/client")
    trials("Docker: a client installed by pip joins", "same")
