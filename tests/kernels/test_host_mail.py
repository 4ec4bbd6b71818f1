"""Inboxes of shards in memory of the host: which addresses kernels get, with CUDA stood for."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

host_mail = pytest.importorskip("edgemill.kernels.gpu.host_mail", exc_type=ImportError)
EDGES = 3
AWAY = 2**40
"""How far a device's address is from the host's."""


class Refused(RuntimeError):
    """In place of CUDARuntimeError."""


class Runtime:
    """Registers memory, up to `most` pieces, and gives the device other addresses than the host."""

    CUDARuntimeError = Refused

    def __init__(self, most: int = 10, away: int = AWAY) -> None:
        self.most, self.away = most, away
        self.registered: dict[int, int] = {}

    def hostRegister(self, address: int, size: int, flags: int) -> None:
        if len(self.registered) == self.most:
            raise Refused("cudaErrorInvalidValue")
        assert flags == 3
        self.registered[address] = size

    def hostUnregister(self, address: int) -> None:
        del self.registered[address]

    def pointerGetAttributes(self, address: int) -> Any:
        assert address in self.registered
        return SimpleNamespace(devicePointer=address + self.away if self.away else 0)


def opened(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> tuple[Any, list[Any]]:
    monkeypatch.setattr(host_mail, "runtime", runtime)
    monkeypatch.setattr(host_mail, "no_loss", lambda: np.zeros(1, np.uint32))
    inboxes = [np.zeros(host_mail.host_inbox_words(2, EDGES), np.uint32) for _ in range(2)]
    return host_mail.HostMail(1, inboxes, EDGES, 1), inboxes


def test_kernels_get_the_addresses_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    mail, inboxes = opened(monkeypatch, runtime)
    begins = [inbox.ctypes.data + AWAY for inbox in inboxes]
    assert mail.inbox == begins[1]
    ends = [begin + inbox.nbytes for begin, inbox in zip(begins, inboxes, strict=True)]
    for table in mail.tables():
        assert table.shape == (2, 2)
        for q in (0, 1):
            assert all(begins[q] <= int(at) < ends[q] for at in table[:, q])
    assert runtime.registered == {inbox.ctypes.data: inbox.nbytes for inbox in inboxes}
    mail.close()
    assert not runtime.registered


def test_others_are_told_not_to_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    mail, inboxes = opened(monkeypatch, Runtime())
    mail.abandon()
    posts = inboxes[0][: 4 * host_mail.POST_WORDS].reshape(2, 2, -1)
    assert (posts[:, 1, 1::2] == host_mail.NEVER).all()
    assert not posts[:, 0].any()
    assert not inboxes[1].any()
    mail.close()


@pytest.mark.parametrize(
    ("runtime", "why"),
    [(Runtime(most=1), "cannot register memory .*cudaErrorInvalidValue"), (Runtime(away=0), "no address")],
)
def test_memory_that_cuda_does_not_reach(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, why: str) -> None:
    """What was registered is given back."""
    with pytest.raises(ConnectionError, match=why):
        opened(monkeypatch, runtime)
    assert not runtime.registered
