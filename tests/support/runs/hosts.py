"""Hosts of a private network: network namespaces with one address each, on one switch."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest


@dataclass(frozen=True)
class Host:
    """One host."""

    namespace: str
    address: str
    port: tuple[str, str]
    """Namespace and name of its port of the switch."""

    @property
    def inside(self) -> tuple[str, ...]:
        """The words before a command that run it on the host."""
        return ("ip", "netns", "exec", self.namespace)

    def link(self, state: str) -> tuple[str, ...]:
        """The command that connects the host (`up`) or cuts it off (`down`). Its connections stay open."""
        return ("ip", "-n", self.port[0], "link", "set", self.port[1], state)


@contextmanager
def hosts(names: Sequence[str]) -> Iterator[list[Host]]:
    """A host for each name. At the end their processes are killed and the hosts are removed.

    Skips the test where network namespaces cannot be made.
    """
    _refuse_without_rights()
    tail = secrets.token_hex(3)
    switch = f"edgemill-switch-{tail}"
    made: list[Host] = []
    try:
        _ip("netns", "add", switch)
        _ip("-n", switch, "link", "add", "bridge", "type", "bridge")
        _ip("-n", switch, "link", "set", "bridge", "up")
        for number, name in enumerate(names, 1):
            host = Host(f"edgemill-{name}-{tail}", f"10.77.0.{number}", (switch, f"port{number}"))
            _ip("netns", "add", host.namespace)
            made.append(host)
            _ip("-n", switch, "link", "add", host.port[1], "type", "veth", "peer", "eth0", "netns", host.namespace)
            _ip("-n", switch, "link", "set", host.port[1], "master", "bridge", "up")
            _ip("-n", host.namespace, "address", "add", f"{host.address}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", host.namespace, "link", "set", device, "up")
        yield made
    finally:
        for namespace in (*(host.namespace for host in made), switch):
            with suppress(subprocess.CalledProcessError):
                for pid in _ip("netns", "pids", namespace).split():
                    with suppress(ProcessLookupError):
                        os.kill(int(pid), signal.SIGKILL)
                _ip("netns", "delete", namespace)


def namespaces() -> str:
    """The namespaces that `ip` lists."""
    return _ip("netns", "list")


def _refuse_without_rights() -> None:
    if shutil.which("ip") is None:
        pytest.skip("there is no command ip (iproute2)")
    probe = f"edgemill-probe-{secrets.token_hex(3)}"
    for words in (["add", probe], ["exec", probe, "true"], ["delete", probe]):
        done = subprocess.run(["ip", "netns", *words], capture_output=True, text=True, check=False)
        if done.returncode != 0:
            pytest.skip(f"no right to make network namespaces: {done.stderr.strip()}")


def _ip(*words: str) -> str:
    return subprocess.run(["ip", *words], capture_output=True, text=True, check=True).stdout
