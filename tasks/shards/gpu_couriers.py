"""Threads beside the kernels of shards: they carry mail between these, or look whether the other groups live."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from threading import Event, Thread
from typing import TYPE_CHECKING

import numpy as np

from ..errors import EdgemillError, InternalError
from .carrier import Carrier
from .telling import NOTHING

if TYPE_CHECKING:
    from ...kernels.gpu.shard_mail import RelayedMail
    from .nccl_carrier import NcclCarrier
    from .on_gpu import ShardMail

__all__ = ["Courier", "Relay", "Watch", "at_work"]

_LOOK_SECONDS = 0.5
"""How often groups tell each other that they live, while mail goes without their carriers."""


@contextmanager
def at_work(threads: Sequence[Courier]) -> Iterator[None]:
    """Within it the threads run. Raises what ended one of them early."""
    for thread in threads:
        thread.start()
    try:
        yield
    except BaseException:
        for thread in threads:  # so that none waits for others any more
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


class Courier(Thread, ABC):
    """Carries for one group until `ended` is set. An `error` ends the group's kernel."""

    def __init__(self, mail: ShardMail, carrier: Carrier) -> None:
        super().__init__(name=f"mail of group {carrier.rank}", daemon=True)
        self.ended = Event()
        self.error: EdgemillError | None = None
        self.carrier = carrier
        self._mail = mail

    def run(self) -> None:
        """Carry, and note why that ended early."""
        try:
            self.carry()
        except EdgemillError as error:
            self.error = error
            self.give_up()
        except Exception as error:
            self.error = InternalError(
                f"the mail of group {self.carrier.rank} of the shards cannot be carried: {error}"
            )
            self.error.__cause__ = error
            self.give_up()
            self.carrier.abandon()

    def give_up(self) -> None:
        """Have the group's kernel wait for others no more."""
        self._mail.lose()

    @abstractmethod
    def carry(self) -> None:
        """Until all have ended."""


class Relay(Courier):
    """Takes mail from the kernel's memory to the others, and theirs to it."""

    _mail: RelayedMail

    def carry(self) -> None:
        """An exchange for each meeting of the kernels."""
        mail, turn = self._mail, 1
        while mail.await_post(turn, self.ended):
            letters = self.carrier.exchange(*mail.outgoing(turn))
            for sender, letter in enumerate(letters):
                if sender != mail.rank:
                    mail.deliver(turn, sender, letter.common, letter.own)
            turn += 1


class Watch(Courier):
    """Tells the others that this group lives, and hears that they do, while its mail goes without its carrier: from
    kernel to kernel, or by NCCL, which has to be told when a group is lost.
    """

    def __init__(self, mail: ShardMail, carrier: Carrier, nccl: NcclCarrier | None = None) -> None:
        super().__init__(mail, carrier)
        self._nccl = nccl

    def give_up(self) -> None:
        """Have the group's kernel, and then NCCL's, wait for others no more."""
        super().give_up()
        if self._nccl is not None:
            self._nccl.abandon()

    def carry(self) -> None:
        """An exchange now and then, until all groups have ended."""
        nothing = [NOTHING] * self.carrier.groups
        while True:
            ended = self.ended.wait(_LOOK_SECONDS)
            if self._nccl is not None:
                self._nccl.check()
            letters = self.carrier.exchange(np.array([ended], np.uint32), nothing)
            if all(letter.common[0] for letter in letters):
                return
