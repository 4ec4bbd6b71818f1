"""The Dockerfile, the lock files and the scripts that it copies."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from socket import create_server
from typing import Any

import dask
import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from certificates import certificate
from containers import DOCKER, ROOT
from edgemill.kernels.runtime import cache

DOCKERFILE = (DOCKER / "Dockerfile").read_text()
LINES = DOCKERFILE.replace("\\\n", " ").splitlines()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
LOCKS = {name: (DOCKER / f"requirements-{name}.txt").read_text() for name in ("build", "cpu", "gpu")}
PIN = re.compile(r"^([\w.-]+)==(\S+)(?: ; .*)? \\\n((?:    --hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)", re.MULTILINE)


def pins(lock: str) -> dict[str, Version]:
    return {canonicalize_name(found[1]): Version(found[2]) for found in PIN.finditer(LOCKS[lock])}


def wanted(requirements: list[str]) -> Iterator[Requirement]:
    """The requirements, and those of the project's own extras in their place."""
    for text in requirements:
        requirement = Requirement(text)
        if requirement.name != "edgemill":
            yield requirement
        for extra in requirement.extras if requirement.name == "edgemill" else ():
            yield from wanted(PROJECT["project"]["optional-dependencies"][extra])


@pytest.mark.parametrize(
    ("lock", "extras"),
    [("cpu", ["s3", "metrics"]), ("gpu", ["s3", "metrics", "cu13", "ucxx-cu13"])],
)
def test_packages_are_pinned_as_the_project_allows(lock: str, extras: list[str]) -> None:
    assert re.findall(r"--extra (\S+)", LOCKS[lock].splitlines()[1]) == extras
    pinned = pins(lock)
    for requirement in wanted([*PROJECT["project"]["dependencies"], f"edgemill[{','.join(extras)}]"]):
        version = pinned[canonicalize_name(requirement.name)]
        assert version in requirement.specifier, f"{requirement}, pinned {version}: run `make lock`"


def test_the_builder_is_pinned() -> None:
    for requirement in map(Requirement, ["build", *PROJECT["build-system"]["requires"]]):
        assert pins("build")[canonicalize_name(requirement.name)] in requirement.specifier


@pytest.mark.parametrize("lock", LOCKS)
def test_every_pin_has_its_hashes(lock: str) -> None:
    assert len(pins(lock)) == len(re.findall(r"^\w", LOCKS[lock], re.MULTILINE))


def test_images_of_one_release_understand_each_other() -> None:
    """Scheduler, workers and driver may be of either image, and Dask wants equal versions."""
    cpu, gpu = pins("cpu"), pins("gpu")
    assert {name: gpu.get(name) for name in cpu} == cpu
    assert not [name for name in cpu if re.search(r"cu\d|cuda|cupy|rmm|ucx|nvidia", name)]


def test_a_client_can_have_the_versions_of_the_images() -> None:
    """A client, a scheduler and workers need one version of Dask; the constraints are what an image is made of."""
    lines = (DOCKER / "constraints.txt").read_text().splitlines()[1:]
    locked = [line.removesuffix(" \\") for line in LOCKS["cpu"].splitlines() if re.match(r"\w", line)]
    assert lines == locked, "run `make docker/constraints.txt`"
    given = {canonicalize_name(Requirement(line).name): Requirement(line).specifier for line in lines}
    for requirement in wanted(PROJECT["project"]["dependencies"]):
        assert str(pins("gpu")[canonicalize_name(requirement.name)]) in given[canonicalize_name(requirement.name)]


def test_packages_of_debian_are_not_pinned() -> None:
    """Debian removes a version when it has a newer one."""
    [installed] = re.findall(r"apt-get install (.*?)&&", " ".join(LINES))
    assert "libgomp1" in installed and "=" not in installed


def test_stages() -> None:
    stages = {}
    for line in LINES:
        if found := re.fullmatch(r"FROM (\S+) AS (\S+)", line):
            base, name = found.groups()
            assert base in stages or re.fullmatch(r"python:3\.\d+\.\d+-slim-\w+@sha256:[0-9a-f]{64}", base)
            stages[name] = base
    assert stages["cpu"] == stages["gpu"] == "base"
    for stage in ("cpu", "gpu"):
        body = DOCKERFILE.partition(f" AS {stage}\n")[2].partition("\nFROM ")[0]
        assert re.findall(r"^USER (.*)", body, re.MULTILINE)[-1:] == ["10001:10001"]
        assert "useradd --uid 10001 " in DOCKERFILE
        assert f"COPY --from=packages-{stage} " in body
        assert "install.sh kernels /opt/edgemill" in body
    python = DOCKERFILE.partition("FROM python:")[2]
    assert f"Programming Language :: Python :: {'.'.join(python.split('.')[:2])}" in PROJECT["project"]["classifiers"]


def test_what_is_copied_is_there() -> None:
    copied = [line.split()[1:-1] for line in LINES if line.startswith("COPY docker/")]
    assert copied and all((ROOT / path).is_file() for paths in copied for path in paths)
    called = re.findall(r"[\w-]+\.sh", DOCKERFILE)
    assert {path.name for path in DOCKER.glob("*.sh")} == set(called)
    assert all(path.stat().st_mode & 0o111 for path in DOCKER.glob("*.sh"))
    context = (DOCKER / "Dockerfile.dockerignore").read_text().splitlines()
    kept = [line[1:] for line in context if line.startswith("!")]
    assert set(kept) >= {
        "docker",
        "package",
        "kernels",
        "tasks",
        "pipeline",
        "pyproject.toml",
        "setup.py",
        PROJECT["project"]["readme"],
    }
    assert all((ROOT / entry).exists() for entry in kept)


def test_folders_that_may_be_written_to(monkeypatch: pytest.MonkeyPatch) -> None:
    given = dict(re.findall(r"^ +([A-Z_]+)=(\S+)", DOCKERFILE, re.MULTILINE))
    made = " ".join(re.findall(r"install --directory.*", DOCKERFILE))
    monkeypatch.setenv("EDGEMILL_CACHE_DIR", given["EDGEMILL_CACHE_DIR"])
    assert str(cache.folder()).startswith("/var/cache/edgemill/kernels/")
    assert "/var/cache/edgemill" in made
    config: dict[str, Any] = {}
    dask.config.refresh(config=config, paths=[], env=given)
    assert config["temporary-directory"] == "/scratch"
    assert "NUMBA_CPU" not in DOCKERFILE  # what is compiled at run time is for the container's own processor
    assert "/scratch" in made


def script(name: str, *arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """One of the image's scripts with the commands of this environment in PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return subprocess.run(
        [DOCKER / name, *arguments], env={**os.environ, "PATH": path, **environment}, capture_output=True, text=True
    )


def test_the_image_is_the_command_and_dask() -> None:
    number = PROJECT["project"]["version"]
    assert script("entrypoint.sh", "--version").stdout == f"edgemill {number}\n"
    assert script("entrypoint.sh", "run").returncode == 2
    for command in (["dask", "worker"], ["dask-worker"]):
        assert script("entrypoint.sh", *command, "--help").stdout.startswith("Usage: dask worker")
    assert script("entrypoint.sh", "dask-scheduler", "--help").stdout.startswith("Usage: dask scheduler")


def test_health() -> None:
    assert script("healthcheck.sh", HEALTH_URL="").returncode == 0
    with closing(create_server(("127.0.0.1", 0))) as taken:
        address = f"http://127.0.0.1:{taken.getsockname()[1]}/health"
    assert script("healthcheck.sh", HEALTH_URL=address).returncode == 1


def test_certificates(tmp_path: Path) -> None:
    folder = tmp_path / "certificates"
    for days in ("1", "100", "x", "-3"):
        assert script("certificates.sh", str(folder), days).returncode == 2
    assert not folder.exists()
    assert ": made, " in script("certificates.sh", str(folder)).stdout
    assert {path.name: path.stat().st_mode & 0o777 for path in folder.iterdir()} == dict.fromkeys(
        ("ca.pem", "node.pem", "node-key.pem"), 0o600
    )
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert ": kept, " in script("certificates.sh", str(folder)).stdout
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first
    (folder / "node-key.pem").write_bytes(first["ca.pem"])
    again = script("certificates.sh", str(folder), "2").stdout
    assert ": made, " in again and again.endswith("; start again what runs with the old ones\n")
    second = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert second.keys() == first.keys()
    assert all(second[name] != first[name] for name in first)


def test_certificates_in_their_last_day_are_made_anew(tmp_path: Path) -> None:
    last = certificate(tmp_path, "last")
    for path, name in zip(last, ("ca.pem", "node.pem", "node-key.pem"), strict=True):
        Path(path).rename(tmp_path / name)
    before = (tmp_path / "node.pem").read_bytes()
    assert ": made, " in script("certificates.sh", str(tmp_path)).stdout
    assert (tmp_path / "node.pem").read_bytes() != before


def test_no_key_is_left_by_one_that_is_ended(tmp_path: Path) -> None:
    """While it makes the first file."""
    temporary, commands = tmp_path / "tmp", tmp_path / "bin"
    for made in (temporary, commands):
        made.mkdir()
    (commands / "openssl").write_text('#!/bin/sh\n: >"$(dirname "$0")/called"\nkill -TERM "$PPID"\n')
    (commands / "openssl").chmod(0o755)
    path = f"{commands}{os.pathsep}{os.environ['PATH']}"
    command = [DOCKER / "certificates.sh", tmp_path / "certificates"]
    done = subprocess.run(command, env={**os.environ, "PATH": path, "TMPDIR": str(temporary)}, capture_output=True)
    assert done.returncode == 143
    assert (commands / "called").exists()
    assert not [*temporary.iterdir(), *(tmp_path / "certificates").iterdir()]


def test_install_says_how_it_is_used() -> None:
    for arguments in ((), ("packages",), ("packages", "a"), ("kernels",), ("kernels", "a", "b"), ("else", "a", "b")):
        done = script("install.sh", *arguments)
        assert done.returncode == 2
        assert "install.sh packages PREFIX REQUIREMENTS" in done.stderr
