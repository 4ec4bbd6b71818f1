"""Threads that run beside the kernels of shards: they relay messages, or send and check heartbeats."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np

from ...errors import EdgemillError, InternalError
from ..carriers.all_gather import EMPTY
from ..carriers.carrier import Carrier

if TYPE_CHECKING:
    from ....kernels.gpu.shards.mail import RelayedMail
    from .nccl_carrier import NcclCarrier
    from .shard import ShardMail

_HEARTBEAT_SECONDS = 0.5
"""Time between two heartbeat exchanges, while messages do not use the carriers."""


@contextmanager
def running_threads(threads: Sequence[TransportThread]) -> Iterator[None]:
    """Run the threads within the context. Raises the error that ended one of them early."""
    for thread in threads:
        thread.start()
    try:
        yield
    except BaseException:
        for thread in threads:  # no thread must wait for other groups any more
            thread.carrier.abandon()
        raise
    finally:
        for thread in threads:
            thread.ended.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        if thread.error is not None:
            raise thread.error


class TransportThread(Thread, ABC):
    """A thread of one group that runs until `ended` is set. An `error` ends the group's kernel."""

    def __init__(self, mail: ShardMail, carrier: Carrier) -> None:
        super().__init__(name=f"messages of group {carrier.rank}", daemon=True)
        self.ended = Event()
        self.error: EdgemillError | None = None
        self.carrier = carrier
        self._mail = mail

    def run(self) -> None:
        """Run `transfer`; store the error if it ends early."""
        try:
            self.transfer()
        except EdgemillError as error:
            self.error = error
            self.give_up()
        except Exception as error:
            self.error = InternalError(f"messages of group {self.carrier.rank} of the shards cannot be sent: {error}")
            self.error.__cause__ = error
            self.give_up()
            self.carrier.abandon()

    def give_up(self) -> None:
        """Make the group's kernel end instead of waiting for other groups."""
        self._mail.mark_peer_lost()

    @abstractmethod
    def transfer(self) -> None:
        """Exchange until all groups have ended."""


class RelayThread(TransportThread):
    """Sends the messages of the group's kernel to the other groups, and delivers theirs to it."""

    _mail: RelayedMail

    def transfer(self) -> None:
        """Make one exchange for each exchange of the kernels."""
        mail, turn = self._mail, 1
        while mail.await_post(turn, self.ended):
            packets = self.carrier.exchange(*mail.outgoing(turn))
            for sender, packet in enumerate(packets):
                if sender != mail.rank:
                    mail.deliver(turn, sender, packet.common, packet.own)
            turn += 1


class HeartbeatThread(TransportThread):
    """Exchanges heartbeats over the carrier, while messages go from kernel to kernel or through NCCL.

    NCCL does not notice lost groups by itself; this thread aborts it then.
    """

    def __init__(self, mail: ShardMail, carrier: Carrier, nccl: NcclCarrier | None = None) -> None:
        super().__init__(mail, carrier)
        self._nccl = nccl

    def give_up(self) -> None:
        """Make the group's kernel, then the kernels of NCCL, end instead of waiting for other groups."""
        super().give_up()
        if self._nccl is not None:
            self._nccl.abandon()

    def transfer(self) -> None:
        """Exchange a heartbeat every _HEARTBEAT_SECONDS, until all groups have ended."""
        nothing = [EMPTY] * self.carrier.groups
        while True:
            ended = self.ended.wait(_HEARTBEAT_SECONDS)
            if self._nccl is not None:
                self._nccl.check()
            packets = self.carrier.exchange(np.array([ended], np.uint32), nothing)
            if all(packet.common[0] for packet in packets):
                return
