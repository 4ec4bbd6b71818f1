"""Starts real systems for tests, each from nothing by its own script, and stops them after the last test."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
CANNOT_RUN = 77
"""Exit status of an `up.sh` that cannot run its system on this machine, after Automake's status for a skipped test."""

StartSystem = Callable[[str], Mapping[str, str]]
"""Takes the name of a folder here, starts its system once and returns what `up.sh` printed, by key."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark every test of this folder."""
    own = {path for path in {item.path for item in items} if path.is_relative_to(HERE)}
    for item in items:
        if item.path in own:
            item.add_marker(pytest.mark.systems)
            item.add_marker(pytest.mark.timeout(1800))  # a test's own limit comes first


@pytest.fixture(scope="session")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StartSystem]:
    """Start a system by name; a second call returns the running one. Skips where the system cannot run."""
    started: dict[str, Mapping[str, str]] = {}
    refused: dict[str, str] = {}
    folders: dict[str, Path] = {}

    def start(name: str) -> Mapping[str, str]:
        if name in refused:
            pytest.skip(refused[name])
        if name not in started:
            folders[name] = tmp_path_factory.mktemp(name)
            done = subprocess.run(["bash", HERE / name / "up.sh", folders[name]], capture_output=True, text=True)
            if done.returncode == CANNOT_RUN:
                refused[name] = f"{name}: {done.stderr.strip().splitlines()[-1]}"
                pytest.skip(refused[name])
            assert done.returncode == 0, f"{name}/up.sh ended with {done.returncode}\n{done.stdout}\n{done.stderr}"
            pairs = (line.partition("=") for line in done.stdout.splitlines() if "=" in line)
            started[name] = {key: value for key, _, value in pairs}
        return started[name]

    yield start
    for name in folders:
        subprocess.run(["bash", HERE / name / "down.sh", folders[name]], check=name in started)
