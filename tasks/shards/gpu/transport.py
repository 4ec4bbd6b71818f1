"""Choice and set-up of the transport of messages between shards on GPUs.

If every GPU reaches the memory of all others, kernels write to each other's mailboxes. If the processes share memory of
a host, kernels write to inboxes there, in files that all processes map. Otherwise a thread per group takes the messages
of its kernel from host memory, sends them over the group's carrier or through NCCL, and writes the messages of other
groups to host memory. Where kernels send the messages themselves, the thread sends and checks heartbeats instead.
"""

from __future__ import annotations

import json
import mmap
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import repeat
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING

import numpy as np

from .... import kernels
from ....kernels.gpu_shards import THIS_PROCESS, Address
from ...errors import EdgemillError, InternalError, UsageError
from ...storage.own_files import open_own
from ..carriers.carrier import EMPTY, Carrier, GroupPacket, Words, all_gather, check_words, lost
from ..carriers.group_file import create_locked, path_of, remove_abandoned
from ..carriers.shared_memory import SharedMemoryCarrier
from ..group_edges import ShardEdges
from .shard import HOST_MEMORY, MAILBOXES, NCCL, RELAY, direct_mail, open_shard_mailbox

if TYPE_CHECKING:
    from ....kernels.gpu.shards.mail import RelayedMail
    from ....kernels.gpu.shards.nccl import Ranks
    from .shard import ShardMail


@contextmanager
def mapped_inboxes(carriers: Sequence[SharedMemoryCarrier], words: int, pool: Executor) -> Iterator[list[Words]]:
    """[groups] the inboxes of all groups: zeros, of at least `words` words. `carriers` are those of this process.

    The files are unlinked before the context is entered; their space is freed when no process maps them any more.
    Raises ConnectionError in every process if any process has no space for its inboxes or cannot map an inbox, and the
    errors of `Carrier.exchange`.
    """
    folders, name = carriers[0].folders, f"{carriers[0].run:016x}-mail"
    size = -(-4 * words // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
    with ExitStack() as stack:
        try:
            own = [_create(folders, name, carrier.rank, size, stack) for carrier in carriers]
            found, *_ = pool.map(all_gather, carriers, own)
            inboxes, why = _map_all(folders, name, found, size)
            # After this exchange no process opens a file by its name.
            reasons, *_ = pool.map(all_gather, carriers, repeat(why.encode()))
        finally:
            for carrier in carriers:
                for folder in folders:
                    with suppress(OSError):
                        os.unlink(path_of(folder, name, carrier.rank))
            remove_abandoned(folders, name)  # files of groups that died
        if any(reasons):
            raise ConnectionError(next(reason.decode() for reason in reasons if reason))
        yield inboxes


def _create(folders: Sequence[str], name: str, rank: int, size: int, stack: ExitStack) -> bytes:
    """Create a file of zeros in the first folder with enough space; returns the folder's number, or b"" without one."""
    for at, folder in enumerate(folders):
        with suppress(OSError), ExitStack() as making:
            handle = create_locked(path_of(folder, name, rank))
            making.callback(os.close, handle)
            os.posix_fallocate(handle, 0, size)
            stack.enter_context(making.pop_all())
            return str(at).encode()
    return b""


def _map_all(folders: Sequence[str], name: str, found: Sequence[bytes], size: int) -> tuple[list[Words], str]:
    """Map the inboxes of all groups from the folders with the numbers `found`; the text says why that failed."""
    inboxes: list[Words] = []
    for rank, at in enumerate(found):
        if not at:
            return [], f"there is no space for {size} bytes in {' and '.join(folders)}"
        path = path_of(folders[int(at)], name, rank)
        try:
            handle = open_own(path, os.O_RDWR | os.O_CLOEXEC)
            try:
                if os.fstat(handle).st_uid != os.geteuid():
                    return [], f"{path} belongs to another user"
                inboxes.append(np.frombuffer(mmap.mmap(handle, size), np.uint32))
            finally:
                os.close(handle)
        except OSError as error:
            return [], f"{path} cannot be mapped ({error})"
    return inboxes, ""


class NcclCarrier:
    """Exchanges packets between GPUs; see `Carrier`. `open` makes it.

    Another thread calls `check`, and `abandon` when a group is lost. NCCL opens its own connections, without TLS.
    """

    name = "nccl"

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.groups = ranks.rank, ranks.count
        self._ranks = ranks
        self._exchange = 0
        self._ending = Lock()
        self._failed = self._closed = False

    @classmethod
    def open(cls, base: Carrier, max_common_words: int, max_own_words: int) -> NcclCarrier:
        """Connect the groups of `base`, each in a process with its own GPU.

        A packet has at most `max_common_words` words for all groups and `max_own_words` for one. Raises ClusterLost if
        NCCL cannot connect the groups.
        """
        from ....kernels.gpu.shards import nccl

        (identity, *_) = all_gather(base, nccl.new_id() if base.rank == 0 else b"")
        try:
            return cls(nccl.Ranks(identity, base.rank, base.groups, max_common_words, max_own_words))
        except RuntimeError as error:
            raise lost(base.rank, f"cannot be connected by NCCL: {error}") from error

    def exchange(self, common: Words, own: Sequence[Words]) -> list[GroupPacket]:
        """See `Carrier.exchange`. The caller must not change its arrays before the next call."""
        check_words(common, own, self.groups)
        if self._failed:
            raise lost(self.rank, "failed")
        self._exchange += 1
        try:
            found = self._ranks.exchange(self._exchange % 2**32, common, own)
        except RuntimeError as error:  # NcclError is one
            raise lost(self.rank, f"is cut off: {error}") from error
        if self._failed:  # after an abort the content is undefined
            raise lost(self.rank, "failed")
        for sender, (number, _, _) in enumerate(found):
            if number != self._exchange % 2**32:
                raise InternalError(f"a packet of exchange {number} of group {sender} came in {self._exchange}")
        return [GroupPacket(np.asarray(to_all), np.asarray(to_one)) for _, to_all, to_one in found]

    def check(self) -> None:
        """Raises ClusterLost if NCCL has had an asynchronous error."""
        with self._ending:
            if self._failed or self._closed:
                return
            try:
                self._ranks.check()
            except RuntimeError as error:
                raise lost(self.rank, f"is cut off: {error}") from error

    def abandon(self) -> None:
        """See `Carrier.abandon`. The other groups notice the failure over the carrier that first connected them.

        NCCL frees memory of the GPU, which waits for its kernels: the group's own kernel must not wait for other groups
        any more.
        """
        with self._ending:
            if not self._failed and not self._closed:
                self._failed = True
                self._ranks.abort()

    def close(self) -> None:
        with self._ending:
            if not self._failed and not self._closed:
                self._ranks.close()
            self._closed = True


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
    """Sends the messages of the group's kernel to the other groups, and delivers the messages of those groups to the
    kernel.
    """

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

    NCCL does not detect lost groups; this thread does, and then aborts NCCL.
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


@dataclass(frozen=True)
class OpenTransport:
    """The open transport of the groups of one process."""

    name: str
    """Name of the transport."""
    mails: Sequence[ShardMail]
    """[groups of this process] the memory that each kernel writes to and reads from."""
    threads: Sequence[TransportThread]
    """Threads that relay messages or exchange heartbeats."""
    why: str = ""
    """Why threads relay messages although kernels were to send them; empty if there is no such reason."""


def open_transport(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], way: str, pool: Executor, stack: ExitStack
) -> OpenTransport:
    """Open the transport of the groups of one process, until the `stack` closes; all processes call this together.

    `way` is "mailboxes", "nccl" (as "auto" if a process has several groups), "auto" for mailboxes if all groups reach
    them, or any other text for the carriers. If the carriers share memory of a host and CUDA can reach that memory,
    kernels write to it instead of the carriers. Raises UsageError for mailboxes that cannot be reached, and for NCCL if
    it is not available.
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
    """Open host memory, from which threads take messages and to which they deliver messages."""
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
    # The error of the first thread is the cause of the errors of the other threads.
    return OpenTransport(NCCL, mails, [HeartbeatThread(mail, base, carrier), RelayThread(mail, carrier)])


def _agree(why: str, carriers: Sequence[Carrier], pool: Executor) -> None:
    """Agree on whether all processes can use a transport. `why` says why this process cannot; it is empty if it can.

    Raises ConnectionError in all processes if one of them cannot.
    """
    reasons, *_ = pool.map(all_gather, carriers, [why.encode()] * len(carriers))
    for reason in reasons:
        if reason:
            raise ConnectionError(reason.decode())
