"""A command whose output has no reader, as after `| head`, ends without a message."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from edgemill.pipeline.output.manifest import Manifest
from known_graphs import FACEBOOK as GRAPH

CLOSED = 141


@pytest.fixture
def closed() -> Iterator[int]:
    """The write end of a pipe whose read end is closed."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


@pytest.fixture
def closed_socket() -> Iterator[int]:
    """A socket whose peer is closed."""
    here, there = socket.socketpair()
    there.close()
    with here:
        yield here.fileno()


def ended(*arguments: str, stdout: int = subprocess.PIPE, stderr: int = subprocess.PIPE) -> tuple[int, str | None]:
    """Exit code, and the output of the stream that has a reader."""
    command = [sys.executable, "-P", "-m", "edgemill.pipeline", *arguments]
    done = subprocess.run(command, stdout=stdout, stderr=stderr, text=True)
    return done.returncode, done.stdout if done.stderr is None else done.stderr


@pytest.mark.parametrize("command", ["show OUT", "status OUT --json", "--help"])
def test_nobody_reads_the_answer(
    command: str, closed: int, tmp_path: Path, write_result: Callable[..., Manifest]
) -> None:
    write_result(tmp_path)
    assert ended(*command.replace("OUT", str(tmp_path)).split(), stdout=closed) == (CLOSED, "")


def test_a_socket_that_nobody_reads(closed_socket: int) -> None:
    """Node.js and sshd start commands with a socket as stdout."""
    assert ended("--version", stdout=closed_socket) == (CLOSED, "")


def test_an_error_keeps_its_code(closed: int, tmp_path: Path) -> None:
    assert ended("show", str(tmp_path / "none"), stderr=closed) == (2, "")


@pytest.mark.parametrize(("arguments", "code"), [(["show", "NONE"], 2), (["--help"], 7)])
def test_a_full_disk_takes_neither_answer_nor_error(arguments: list[str], code: int) -> None:
    with open("/dev/full", "wb") as full:
        assert ended(*arguments, stdout=full.fileno(), stderr=full.fileno())[0] == code


def test_nobody_reads_the_events(closed: int, tmp_path: Path) -> None:
    """The run ends as other commands in a pipe do, and its log has the reason."""
    run = ("run", "--input", str(GRAPH), "--output", str(tmp_path / "out"), "--log-format", "json")
    assert ended(*run, stderr=closed) == (CLOSED, "")
    [log] = tmp_path.iterdir()
    last = json.loads(log.read_text().splitlines()[-1])
    assert (last["event"], last["exit_code"]) == ("run_failed", CLOSED)
    assert "closed the pipe" in last["error"]
