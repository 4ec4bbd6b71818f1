"""Groups of shards on GPUs, one shard each: how their mail goes, and how a lost group is noticed.

All groups meet over their carriers first. Where every GPU reaches the memory of all others, kernels write into each
other's mailboxes, and carriers only tell that all groups live. Elsewhere a thread for each group carries the mail over
its carrier: the kernel writes to memory of the host, and waits there for that of others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, replace
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ...kernels.peers import Address
from ..errors import ClusterLost, UsageError
from .carrier import Carrier
from .edges import ShardEdges
from .gpu_couriers import Courier, Relay, Watch, at_work
from .on_gpu import ShardOnGpu, Totals, check_totals, direct_mail, open_shard_mailbox, peel_shards_on_gpu
from .telling import NOTHING, tell_all

if TYPE_CHECKING:
    from .on_gpu import ShardMail

__all__ = ["MAILBOXES", "peel_groups_on_gpu"]

MAILBOXES = "mailboxes"
"""The way on which carriers do not carry: kernels write into each other's memory."""


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
    have the carriers carry. `before`, `seconds` and `progress` are as in `peel_shards_on_gpu`. Raises
    ClusterLost when another group is lost, within 30 s; UsageError for a way that cannot be gone; InternalError when a
    rule of conservation is violated.
    """
    with ThreadPoolExecutor(len(edges), "groups") as pool, ExitStack() as stack:
        try:
            in_mailboxes = way in ("auto", MAILBOXES) or edges[0].groups == 1  # alone it tells nobody
            mails = _open_mailboxes(edges, carriers, way, pool, stack) if in_mailboxes else None
            direct = mails is not None
            threads: list[Courier] = []
            if mails is not None:
                threads = [Watch(*own) for own in zip(mails, carriers, strict=True)]
            else:
                mails, threads = _open_relays(edges, carriers, stack)
            with at_work(threads):
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


def _open_mailboxes(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], way: str, pool: ThreadPoolExecutor, stack: ExitStack
) -> list[ShardMail] | None:
    """The mail of these groups if all groups reach all mailboxes; else None, or UsageError where they must."""
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
        reasons, *_ = pool.map(tell_all, carriers, [why.encode()] * len(carriers))
        if not any(reasons):
            stack.enter_context(opening.pop_all())
            return mails
    if way == MAILBOXES:
        reason = next(filter(None, reasons)).decode()
        raise UsageError(f"bounding.carrier is mailboxes, and {reason}: use bounding.carrier=auto")
    return None


def _open_relays(
    edges: Sequence[ShardEdges], carriers: Sequence[Carrier], stack: ExitStack
) -> tuple[list[ShardMail], list[Courier]]:
    """The mail of these groups, and the threads that carry it."""
    mails: list[ShardMail] = []
    threads: list[Courier] = []
    for one, carrier in zip(edges, carriers, strict=True):
        mail = kernels.relayed_mail(one.low, one.group, one.groups, one.edges, len(edges))
        stack.callback(mail.close)
        mails.append(mail)
        threads.append(Relay(mail, carrier))
    return mails, threads


def _plain(address: Address) -> dict[str, object]:
    return asdict(address) | {"handle": address.handle.hex()}


def _address(text: bytes) -> Address:
    fields = json.loads(text)
    return Address(**fields | {"handle": bytes.fromhex(fields["handle"])})


def _gather_totals(carrier: Carrier, state: ShardOnGpu) -> list[Totals]:
    """Of all groups."""
    words = np.array([value % 2**64 for value in state.totals], np.uint64).view(np.uint32)
    letters = carrier.exchange(words, [NOTHING] * carrier.groups)
    return [Totals(*letter.common.view(np.uint64).tolist()) for letter in letters]
