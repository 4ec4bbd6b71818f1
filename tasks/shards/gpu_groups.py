"""Groups of shards on GPUs, one shard each: how their mail goes, and how a lost group is noticed.

All groups meet over their carriers first. Where every GPU reaches the memory of all others, kernels write into each
other's mailboxes, and carriers only tell that all groups live. Elsewhere a thread for each group carries the mail:
its kernel writes to memory of the host, and waits there for that of others.
"""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, replace
from threading import Event, Thread
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from ... import kernels
from ...kernels.peers import Address
from ..errors import ClusterLost, EdgemillError, InternalError, UsageError
from .carrier import Carrier, Words
from .edges import ShardEdges
from .on_gpu import ShardOnGpu, Totals, check_totals, direct_mail, open_shard_mailbox, peel_shards_on_gpu

if TYPE_CHECKING:
    from ...kernels.gpu.shard_mail import DirectMail, RelayedMail

    ShardMail: TypeAlias = DirectMail | RelayedMail

__all__ = ["peel_groups_on_gpu"]

MAILBOXES = "mailboxes"
"""The carrier's name where kernels write into each other's memory."""
_LOOK_SECONDS = 0.5
"""How often groups tell each other that they live, while mail goes without their carriers."""
_EMPTY = np.empty(0, np.uint32)


def peel_groups_on_gpu(
    edges: Sequence[ShardEdges],
    carriers: Sequence[Carrier],
    before: Sequence[ShardOnGpu] | None = None,
    seconds: float | None = None,
    progress: Callable[[int, int], None] | None = None,
    *,
    way: str = "auto",
) -> list[ShardOnGpu]:
    """Peel the groups of one process, which has the `carriers` [groups]; all processes call this at once.

    `way` is "mailboxes" to write into each other's memory, "auto" to do so where all groups can, or anything else to
    have the carriers carry. `before`, `seconds` and `progress` are as in `peel_shards_on_gpu`. Raises ClusterLost when
    another group is lost, within 30 s; UsageError for mailboxes that cannot be reached; InternalError when a rule of
    conservation is violated.
    """
    with ThreadPoolExecutor(len(edges), "groups") as pool, ExitStack() as stack:
        try:
            mails, direct = _open(edges, carriers, way, pool, stack)
            with _carried(mails, carriers, direct) as threads:
                try:
                    found = peel_shards_on_gpu(edges, mails, before, seconds, progress)
                except ClusterLost as error:
                    raise next((thread.error for thread in threads if thread.error is not None), error) from error
            totals, *_ = pool.map(_gather_totals, carriers, found)
            check_totals(totals)
        except BaseException:
            for carrier in carriers:
                carrier.abandon()
            raise
    return [replace(state, direct=direct) for state in found]


def _open(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], way: str, pool: ThreadPoolExecutor, stack: ExitStack
) -> tuple[list[ShardMail], bool]:
    """The mail of these groups, and whether it goes into mailboxes."""
    if way in ("auto", MAILBOXES):
        mailboxes = [open_shard_mailbox(one) for one in edges]
        told = [json.dumps(_plain(mailbox.address())).encode() for mailbox in mailboxes]
        texts, *_ = pool.map(_tell_all, carriers, told)
        addresses = list(map(_address, texts))
        mails: list[ShardMail] = []
        why = ""
        with ExitStack() as opening:
            try:
                mails = opening.enter_context(direct_mail(edges, mailboxes, addresses))
            except ConnectionError as error:
                why = str(error)
            reasons, *_ = pool.map(_tell_all, carriers, [why.encode()] * len(carriers))
            if not any(reasons):
                stack.enter_context(opening.pop_all())
                return mails, True
        if way == MAILBOXES:
            reason = next(filter(None, reasons)).decode()
            raise UsageError(f"bounding.carrier is mailboxes, and {reason}: use bounding.carrier=auto")
    relayed: list[ShardMail] = []
    for one in edges:
        mail = kernels.relayed_mail(one.low, one.group, one.groups, one.edges, len(edges))
        stack.callback(mail.close)
        relayed.append(mail)
    return relayed, False


@contextmanager
def _carried(mails: Sequence[ShardMail], carriers: Sequence[Carrier], direct: bool) -> Iterator[Sequence[_Courier]]:
    """A thread for each group, which carries its mail or looks whether the others live, until all have ended."""
    threads: list[_Courier] = [
        (_Watch if direct else _Relay)(mail, carrier) for mail, carrier in zip(mails, carriers, strict=True)
    ]
    for thread in threads:
        thread.start()
    try:
        yield threads
    except BaseException:
        for carrier in carriers:  # so that no thread waits for others any more
            carrier.abandon()
        raise
    finally:
        for thread in threads:
            thread.ended.set()
        for thread in threads:
            thread.join()
    for thread in threads:
        if thread.error is not None:
            raise thread.error


class _Courier(Thread, ABC):
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
            self._mail.lose()
        except Exception as error:
            self.error = InternalError(
                f"the mail of group {self.carrier.rank} of the shards cannot be carried: {error}"
            )
            self.error.__cause__ = error
            self.carrier.abandon()
            self._mail.lose()

    @abstractmethod
    def carry(self) -> None:
        """Until all have ended."""


class _Relay(_Courier):
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


class _Watch(_Courier):
    """Tells the others that this group lives, and hears that they do."""

    def carry(self) -> None:
        """An exchange now and then, until all groups have ended."""
        nothing = [_EMPTY] * self.carrier.groups
        while True:
            ended = self.ended.wait(_LOOK_SECONDS)
            letters = self.carrier.exchange(np.array([ended], np.uint32), nothing)
            if all(letter.common[0] for letter in letters):
                return


def _tell_all(carrier: Carrier, text: bytes) -> list[bytes]:
    """What every group tells all, by rank."""
    padded = text + b" " * (-len(text) % 4)
    words: Words = np.append(np.uint32(len(text)), np.frombuffer(padded, np.uint32)).astype(np.uint32)
    letters = carrier.exchange(words, [_EMPTY] * carrier.groups)
    return [letter.common[1:].tobytes()[: int(letter.common[0])] for letter in letters]


def _plain(address: Address) -> dict[str, object]:
    return asdict(address) | {"handle": address.handle.hex()}


def _address(text: bytes) -> Address:
    fields = json.loads(text)
    return Address(**fields | {"handle": bytes.fromhex(fields["handle"]), "offsets": tuple(fields["offsets"])})


def _gather_totals(carrier: Carrier, state: ShardOnGpu) -> list[Totals]:
    """Of all groups."""
    words = np.array([value % 2**64 for value in state.totals], np.uint64).view(np.uint32)
    letters = carrier.exchange(words, [_EMPTY] * carrier.groups)
    return [Totals(*letter.common.view(np.uint64).tolist()) for letter in letters]
