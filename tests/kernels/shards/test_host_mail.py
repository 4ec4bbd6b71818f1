"""Inboxes in host memory: the addresses that kernels get. A stand-in replaces CUDA."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

host_mail = pytest.importorskip("edgemill.kernels.gpu.shards.mail", exc_type=ImportError)
EDGES = 3
OFFSET = 2**40
"""Difference between the addresses of the device and of the host."""


class Refused(RuntimeError):
    """Stand-in for CUDARuntimeError."""


class Runtime:
    """Registers up to `most` pieces of memory. The device has other addresses than the host."""

    CUDARuntimeError = Refused

    def __init__(self, most: int = 10, offset: int = OFFSET) -> None:
        self.most, self.offset = most, offset
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
        return SimpleNamespace(devicePointer=address + self.offset if self.offset else 0)


def opened(monkeypatch: pytest.MonkeyPatch, runtime: Runtime) -> tuple[Any, list[Any]]:
    monkeypatch.setattr(host_mail, "runtime", runtime)
    monkeypatch.setattr(host_mail, "peer_lost_flag", lambda: np.zeros(1, np.uint32))
    inboxes = [np.zeros(host_mail.host_inbox_words(2, EDGES), np.uint32) for _ in range(2)]
    return host_mail.HostMail(1, inboxes, EDGES, 1), inboxes


def test_kernels_get_the_addresses_of_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    runtime = Runtime()
    mail, inboxes = opened(monkeypatch, runtime)
    begins = [inbox.ctypes.data + OFFSET for inbox in inboxes]
    assert mail.inbox == begins[1]
    ends = [begin + inbox.nbytes for begin, inbox in zip(begins, inboxes, strict=True)]
    for table in mail.tables():
        assert table.shape == (2, 2)
        for q in (0, 1):
            assert all(begins[q] <= int(at) < ends[q] for at in table[:, q])
    assert runtime.registered == {inbox.ctypes.data: inbox.nbytes for inbox in inboxes}
    mail.close()
    assert not runtime.registered


def test_others_stop_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    mail, inboxes = opened(monkeypatch, Runtime())
    mail.abandon()
    posts = inboxes[0][: 4 * host_mail.POST_WORDS].reshape(2, 2, -1)
    assert (posts[:, 1, 1::2] == host_mail.NEVER).all()
    assert not posts[:, 0].any()
    assert not inboxes[1].any()
    mail.close()


@pytest.mark.parametrize(
    ("runtime", "why"),
    [(Runtime(most=1), "cannot register memory .*cudaErrorInvalidValue"), (Runtime(offset=0), "no address")],
)
def test_memory_that_cuda_cannot_access(monkeypatch: pytest.MonkeyPatch, runtime: Runtime, why: str) -> None:
    """All registered memory is unregistered."""
    with pytest.raises(ConnectionError, match=why):
        opened(monkeypatch, runtime)
    assert not runtime.registered
