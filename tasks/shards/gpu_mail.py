"""Which way the mail of shards on GPUs goes, and what it needs.

Where every GPU reaches the memory of all others, kernels write into each other's mailboxes. Where processes share
memory of a host, kernels write there. Elsewhere a thread for each group takes mail from memory that its kernel writes
to, and that of the others to memory that its kernel reads: over the group's carrier, or through NCCL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from ... import kernels
from ...kernels.peers import THIS_PROCESS, Address
from ..errors import UsageError
from .carrier import Carrier
from .edges import ShardEdges
from .gpu_couriers import Courier, Relay, Watch
from .mail_files import mapped_inboxes
from .mail_ways import HOST_MEMORY, MAILBOXES, NCCL, RELAY
from .nccl_carrier import NcclCarrier
from .on_gpu import direct_mail, open_shard_mailbox
from .shared_memory import SharedMemoryCarrier
from .telling import tell_all

if TYPE_CHECKING:
    from ...kernels.gpu.shard_mail import RelayedMail
    from .on_gpu import ShardMail

__all__ = ["OpenMail", "open_mail"]


@dataclass(frozen=True)
class OpenMail:
    """The mail of the groups of one process."""

    way: str
    """It goes; see `mail_ways`."""
    mails: Sequence[ShardMail]
    """[groups of this process]"""
    threads: Sequence[Courier]
    """That carry it, or look whether the other groups live."""
    why: str = ""
    """Why threads carry it and kernels do not; empty where nobody asked for kernels, or they do."""


def open_mail(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], way: str, pool: Executor, stack: ExitStack
) -> OpenMail:
    """Open the mail of the groups of one process, until the `stack` closes; all processes call this at once.

    `way` is "mailboxes", "nccl", "auto" for mailboxes where all groups reach them, or anything else to have the
    carriers carry. Carriers that share memory of a host leave that to kernels where CUDA can reach such memory. Raises
    UsageError for mailboxes that are not reached and for NCCL where it cannot be had.
    """
    if way == NCCL and edges[0].groups > 1:
        if _has_gpus_apart(carriers, pool):
            return _through_nccl(edges, carriers, pool, stack)
        way = "auto"
    reasons = []
    if way in ("auto", MAILBOXES) or edges[0].groups == 1:  # alone it tells nobody
        try:
            mails = _direct(edges, carriers, pool, stack)
            return OpenMail(MAILBOXES, mails, list(map(Watch, mails, carriers)))
        except ConnectionError as error:
            if way == MAILBOXES:
                raise UsageError(f"bounding.carrier is mailboxes, and {error}: use bounding.carrier=auto") from error
            reasons.append(str(error))
    sharing = [carrier for carrier in carriers if isinstance(carrier, SharedMemoryCarrier)]
    if sharing:
        try:
            mails = _through_host(edges, sharing, pool, stack)
            return OpenMail(HOST_MEMORY, mails, list(map(Watch, mails, carriers)))
        except ConnectionError as error:
            reasons.append(str(error))
    relayed = _relayed(edges, stack)
    return OpenMail(RELAY, relayed, list(map(Relay, relayed, carriers)), "; ".join(reasons))


def _direct(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], pool: Executor, stack: ExitStack
) -> list[ShardMail]:
    """Through mailboxes. Raises ConnectionError in all processes if one group cannot reach another's."""
    mailboxes = [open_shard_mailbox(one) for one in edges]
    told = [json.dumps(_plain(mailbox.address())).encode() for mailbox in mailboxes]
    texts, *_ = pool.map(tell_all, carriers, told)
    mails: list[ShardMail] = []
    why = ""
    with ExitStack() as opening:
        try:
            mails = opening.enter_context(direct_mail(edges, mailboxes, list(map(_address, texts))))
        except ConnectionError as error:
            why = str(error)
        _agree(why, carriers, pool)
        stack.enter_context(opening.pop_all())
    return mails


def _through_host(
    edges: Sequence[ShardEdges], carriers: Sequence[SharedMemoryCarrier], pool: Executor, stack: ExitStack
) -> list[ShardMail]:
    """Through memory of the host. Raises ConnectionError in all processes if one group cannot reach another's."""
    words = kernels.host_inbox_words(edges[0].low, edges[0].groups, edges[0].edges)
    mails: list[ShardMail] = []
    why = ""
    with ExitStack() as opening:
        inboxes = opening.enter_context(mapped_inboxes(carriers, words, pool))
        try:
            for one in edges:
                mail = kernels.host_mail(one.low, one.group, inboxes, one.edges, len(edges))
                opening.callback(mail.close)
                mails.append(mail)
        except ConnectionError as error:
            why = str(error)
        _agree(why, carriers, pool)
        stack.enter_context(opening.pop_all())
    return mails


def _relayed(edges: Sequence[ShardEdges], stack: ExitStack) -> list[RelayedMail]:
    """In memory of the host from where threads take it."""
    mails: list[RelayedMail] = []
    for one in edges:
        mail = kernels.relayed_mail(one.low, one.group, one.groups, one.edges, len(edges))
        stack.callback(mail.close)
        mails.append(mail)
    return mails


def _has_gpus_apart(carriers: Sequence[Carrier], pool: Executor) -> bool:
    """Whether each group has a process of its own, as NCCL needs it.

    Raises UsageError where there is no NCCL, or two processes have one GPU.
    """
    own = json.dumps([kernels.nccl_lack(), THIS_PROCESS, kernels.device().machine, kernels.device().bus]).encode()
    told, *_ = pool.map(tell_all, carriers, [own] * len(carriers))
    found = [json.loads(text) for text in told]
    reason = next((lack for lack, *_ in found if lack), "")
    if reason:
        raise UsageError(f"bounding.carrier is nccl, and {reason}; or use bounding.carrier=auto")
    processes = {process for _, process, *_ in found}
    if len({(machine, bus) for _, _, machine, bus in found}) < len(processes):
        raise UsageError(
            "bounding.carrier is nccl, and two workers have one GPU, which NCCL refuses: give each worker a GPU of its "
            "own, or use bounding.carrier=auto"
        )
    return len(processes) == len(found)


def _through_nccl(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], pool: Executor, stack: ExitStack
) -> OpenMail:
    mails = _relayed(edges, stack)
    (mail,), (base,) = mails, carriers
    carrier = NcclCarrier.open(base, mail.most_common, mail.most_own)
    stack.callback(carrier.close)
    mail.spare = kernels.nccl_spare()
    # The first thread's error says why others end.
    return OpenMail(NCCL, mails, [Watch(mail, base, carrier), Relay(mail, carrier)])


def _agree(why: str, carriers: Sequence[Carrier], pool: Executor) -> None:
    """Tell all why the groups of this process cannot go this way; empty if they can. Raises ConnectionError in all."""
    told, *_ = pool.map(tell_all, carriers, [why.encode()] * len(carriers))
    for reason in told:
        if reason:
            raise ConnectionError(reason.decode())


def _plain(address: Address) -> dict[str, object]:
    return asdict(address) | {"handle": address.handle.hex()}


def _address(text: bytes) -> Address:
    fields = json.loads(text)
    return Address(**fields | {"handle": bytes.fromhex(fields["handle"])})
