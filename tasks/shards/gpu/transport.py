"""Choice and set-up of the transport of messages between shards on GPUs.

If every GPU reaches the memory of all others, kernels write to each other's mailboxes. If the processes share memory of
a host, kernels write there. Otherwise a thread per group takes the messages of its kernel from memory of the host and
delivers those of other groups there, over the group's carrier or through NCCL.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from concurrent.futures import Executor
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .... import kernels
from ....kernels.gpu_shards import THIS_PROCESS, Address
from ...errors import UsageError
from ..carriers.all_gather import all_gather
from ..carriers.carrier import Carrier
from ..carriers.shared_memory import SharedMemoryCarrier
from ..edges import ShardEdges
from .inbox_files import mapped_inboxes
from .nccl_carrier import NcclCarrier
from .shard import direct_mail, open_shard_mailbox
from .transport_names import HOST_MEMORY, MAILBOXES, NCCL, RELAY
from .transport_threads import HeartbeatThread, RelayThread, TransportThread

if TYPE_CHECKING:
    from ....kernels.gpu.shards.mail import RelayedMail
    from .shard import ShardMail


@dataclass(frozen=True)
class OpenTransport:
    """The open transport of the groups of one process."""

    name: str
    """One of `transport_names`."""
    mails: Sequence[ShardMail]
    """[groups of this process] the memory that each kernel writes to and reads from."""
    threads: Sequence[TransportThread]
    """Threads that relay messages or exchange heartbeats."""
    why: str = ""
    """Why threads relay messages instead of kernels; empty if kernels send them or were not asked for."""


def open_transport(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], way: str, pool: Executor, stack: ExitStack
) -> OpenTransport:
    """Open the transport of the groups of one process, until the `stack` closes; all processes call this together.

    `way` is "mailboxes", "nccl", "auto" for mailboxes if all groups reach them, or any other text for the carriers.
    Instead of carriers that share memory of a host, kernels write to that memory if CUDA can reach it. Raises
    UsageError for mailboxes that are not reached and for NCCL if it is not available.
    """
    if way == NCCL and edges[0].groups > 1:
        if _has_gpus_apart(carriers, pool):
            return _through_nccl(edges, carriers, pool, stack)
        way = "auto"
    reasons = []
    if way in ("auto", MAILBOXES) or edges[0].groups == 1:  # a single group sends nothing
        try:
            mails = _direct(edges, carriers, pool, stack)
            return OpenTransport(MAILBOXES, mails, list(map(HeartbeatThread, mails, carriers)))
        except ConnectionError as error:
            if way == MAILBOXES:
                raise UsageError(f"bounding.carrier is mailboxes, and {error}: use bounding.carrier=auto") from error
            reasons.append(str(error))
    sharing = [carrier for carrier in carriers if isinstance(carrier, SharedMemoryCarrier)]
    if sharing:
        try:
            mails = _through_host(edges, sharing, pool, stack)
            return OpenTransport(HOST_MEMORY, mails, list(map(HeartbeatThread, mails, carriers)))
        except ConnectionError as error:
            reasons.append(str(error))
    relayed = _relayed(edges, stack)
    return OpenTransport(RELAY, relayed, list(map(RelayThread, relayed, carriers)), "; ".join(reasons))


def _direct(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], pool: Executor, stack: ExitStack
) -> list[ShardMail]:
    """Open mailboxes. Raises ConnectionError in all processes if one group cannot reach the mailbox of another."""
    mailboxes = [open_shard_mailbox(one) for one in edges]
    own = [mailbox.address().encode() for mailbox in mailboxes]
    texts, *_ = pool.map(all_gather, carriers, own)
    mails: list[ShardMail] = []
    why = ""
    with ExitStack() as opening:
        try:
            mails = opening.enter_context(direct_mail(edges, mailboxes, list(map(Address.decode, texts))))
        except ConnectionError as error:
            why = str(error)
        _agree(why, carriers, pool)
        stack.enter_context(opening.pop_all())
    return mails


def _through_host(
    edges: Sequence[ShardEdges], carriers: Sequence[SharedMemoryCarrier], pool: Executor, stack: ExitStack
) -> list[ShardMail]:
    """Open inboxes in host memory. Raises ConnectionError in all processes if a group cannot reach an inbox."""
    from ....kernels.gpu.shards.mail import HostMail, host_inbox_words

    words = host_inbox_words(edges[0].groups, edges[0].edges)
    mails: list[ShardMail] = []
    why = ""
    with ExitStack() as opening:
        inboxes = opening.enter_context(mapped_inboxes(carriers, words, pool))
        try:
            for one in edges:
                mail = HostMail(one.group, inboxes, one.edges, len(edges))
                opening.callback(mail.close)
                mails.append(mail)
        except ConnectionError as error:
            why = str(error)
        _agree(why, carriers, pool)
        stack.enter_context(opening.pop_all())
    return mails


def _relayed(edges: Sequence[ShardEdges], stack: ExitStack) -> list[RelayedMail]:
    """Open host memory from where threads take and to where they deliver messages."""
    from ....kernels.gpu.shards.mail import RelayedMail

    mails: list[RelayedMail] = []
    for one in edges:
        mail = RelayedMail(one.group, one.groups, one.edges, len(edges))
        stack.callback(mail.close)
        mails.append(mail)
    return mails


def _has_gpus_apart(carriers: Sequence[Carrier], pool: Executor) -> bool:
    """Whether each group has its own process, as NCCL requires.

    Raises UsageError if NCCL is not installed or two processes have the same GPU.
    """
    from ....kernels.gpu.shards import nccl

    own = json.dumps([nccl.missing(), THIS_PROCESS, kernels.device().machine, kernels.device().bus]).encode()
    texts, *_ = pool.map(all_gather, carriers, [own] * len(carriers))
    found = [json.loads(text) for text in texts]
    reason = next((lack for lack, *_ in found if lack), "")
    if reason:
        raise UsageError(f"bounding.carrier is nccl, and {reason}; or use bounding.carrier=auto")
    processes = {process for _, process, *_ in found}
    if len({(machine, bus) for _, _, machine, bus in found}) < len(processes):
        raise UsageError(
            "bounding.carrier is nccl, and two workers have the same GPU, which NCCL refuses: give each worker its own "
            "GPU, or use bounding.carrier=auto"
        )
    return len(processes) == len(found)


def _through_nccl(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], pool: Executor, stack: ExitStack
) -> OpenTransport:
    from ....kernels.gpu.shards.nccl import RESERVED_PROCESSORS

    mails = _relayed(edges, stack)
    (mail,), (base,) = mails, carriers
    carrier = NcclCarrier.open(base, mail.max_common_words, mail.max_own_words)
    stack.callback(carrier.close)
    mail.reserved_processors = RESERVED_PROCESSORS
    # The error of the first thread is the cause of those of the others.
    return OpenTransport(NCCL, mails, [HeartbeatThread(mail, base, carrier), RelayThread(mail, carrier)])


def _agree(why: str, carriers: Sequence[Carrier], pool: Executor) -> None:
    """Agree on whether all processes can use a transport; `why` says why this one cannot, empty if it can.

    Raises ConnectionError in all processes if one of them cannot.
    """
    reasons, *_ = pool.map(all_gather, carriers, [why.encode()] * len(carriers))
    for reason in reasons:
        if reason:
            raise ConnectionError(reason.decode())
