"""A carrier over NCCL between groups with one GPU each. Another carrier connects the groups first."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ...errors import InternalError
from ..carriers.all_gather import all_gather
from ..carriers.carrier import Carrier, Packet, Words, check_words, lost

if TYPE_CHECKING:
    from ....kernels.gpu.shards.nccl import Ranks


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

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Packet]:
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
        return [Packet(np.asarray(to_all), np.asarray(to_one)) for _, to_all, to_one in found]

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
        """See `Carrier.abandon`. The other groups notice it by the carrier that connected them.

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
