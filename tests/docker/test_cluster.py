"""The cluster of compose.yaml without Docker: its very commands and environment, as processes of this machine."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from socket import create_server
from typing import Any

import pytest

from containers import DOCKER, ROOT, compose
from edgemill.pipeline import Result
from edgemill.pipeline.cluster.connecting.tls import speaks_tls

START_SECONDS = 60


class Machine:
    """Where the services run: folders under one, ports that are free, and 127.0.0.1 for the names of the others."""

    def __init__(self, folder: Path) -> None:
        self.services = compose("compose.yaml")["services"]
        self.folder = folder
        self.ports = dict(zip(("8786", "8787"), free_ports(2), strict=True))

    def path(self, inside: str) -> Path:
        return ROOT / "tests" / "graphs" if inside == "/input" else self.folder / inside.strip("/")

    def own(self, text: str, ports: dict[str, str]) -> str:
        text = re.sub(r"\b878\d\b", lambda found: ports[found[0]], text.replace("//scheduler:", "//127.0.0.1:"))
        return re.sub(r"(?<![\w/.])/(certificates|input|results)\b", lambda found: str(self.path(found[0])), text)

    def argv(self, name: str, ports: dict[str, str] | None = None) -> list[str]:
        service = self.services[name]
        [script] = service.get("entrypoint", ["entrypoint.sh"])
        return [str(DOCKER / script), *(self.own(word, ports or self.ports) for word in service["command"])]

    def environment(self, name: str, ports: dict[str, str] | None = None) -> dict[str, str]:
        given = self.services[name].get("environment", {}) | {"DASK_TEMPORARY_DIRECTORY": str(self.folder / "scratch")}
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        return {**os.environ, "PATH": path} | {
            key: self.own(value, ports or self.ports) for key, value in given.items()
        }

    def ended(self, name: str) -> subprocess.CompletedProcess[str]:
        """A service that ends by itself, after it has."""
        return subprocess.run(
            self.argv(name), env=self.environment(name), capture_output=True, text=True, timeout=START_SECONDS
        )

    @contextmanager
    def running(self, name: str) -> Iterator[subprocess.Popen[bytes]]:
        """A service that stays, once its health check passes; ended as Docker ends it."""
        ports = self.ports | {"8788": free_ports(1)[0]}
        environment = self.environment(name, ports)
        process = subprocess.Popen(self.argv(name, ports), env=environment, stderr=subprocess.DEVNULL)
        try:
            check = [str(DOCKER / self.services[name]["healthcheck"]["test"][1])]
            for _ in range(self.services[name]["healthcheck"]["retries"] * 100):
                assert process.poll() is None, f"{name} ended"
                if subprocess.run(check, env=environment, stderr=subprocess.DEVNULL).returncode == 0:
                    break
            else:
                pytest.fail(f"{name} never became healthy")
            yield process
            process.send_signal(signal.SIGTERM)
            process.wait(30)
        finally:
            process.kill()
            process.wait()


def free_ports(count: int) -> list[str]:
    with ExitStack() as held:
        taken = [held.enter_context(closing(create_server(("127.0.0.1", 0)))) for _ in range(count)]
        return [str(server.getsockname()[1]) for server in taken]


def order(services: dict[str, Any]) -> list[str]:
    """Services, each after those that it depends on."""
    done: list[str] = []
    while len(done) < len(services):
        done += [
            name for name in services if name not in done and set(services[name].get("depends_on", ())) <= set(done)
        ]
    return done


@pytest.mark.slow
def test_from_certificates_to_a_result(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    for name in ("scratch", "results"):
        (tmp_path / name).mkdir()
    assert order(machine.services) == ["certificates", "scheduler", "worker", "job"]
    made = machine.ended("certificates")
    assert made.returncode == 0, made.stderr
    with machine.running("scheduler") as scheduler:
        with machine.running("worker"), machine.running("worker"):
            assert speaks_tls(f"tcp://127.0.0.1:{machine.ports['8786']}")
            job = machine.ended("job")
            assert job.returncode == 0, job.stderr
            again = machine.ended("job")
            assert (again.returncode, again.stdout[:13]) == (0, "nothing to do"), again.stderr
        assert scheduler.poll() is None
    result = Result(tmp_path / "results" / "facebook")
    assert (result.manifest.counts.edges, result.manifest.counts.triangles) == (88_234, 1_612_010)
    assert result.manifest.lam is not None and result.manifest.lam.max == 95
    assert len(result.manifest.partitions) == 1  # one worker can hold so small a graph, and they share a host
    key = (tmp_path / "certificates" / "node-key.pem").read_text().splitlines()[1]
    assert not [file for file in result.path.rglob("*") if file.is_file() and key.encode() in file.read_bytes()]
