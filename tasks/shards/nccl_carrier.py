"""Letters between groups on GPUs of their own through NCCL. Another carrier brings the groups together."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ..errors import InternalError
from .carrier import Carrier, Letter, Words, check_words, lost
from .telling import tell_all

if TYPE_CHECKING:
    from ...kernels.gpu.nccl import Ranks

__all__ = ["NcclCarrier"]


class NcclCarrier:
    """Carries between GPUs; see `Carrier`. `open` gives it. Another thread calls `check`, and `abandon` for a loss.

    NCCL opens connections of its own, without TLS.
    """

    name = "nccl"

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.groups = ranks.rank, ranks.count
        self._ranks = ranks
        self._exchange = 0
        self._ending = Lock()
        self._failed = self._closed = False

    @classmethod
    def open(cls, base: Carrier, most_common: int, most_own: int) -> NcclCarrier:
        """Meet the groups that `base` has brought together, each in a process with a GPU of its own.

        Letters have at most so many words to all, and to one. Raises ClusterLost where NCCL cannot connect them.
        """
        (identity, *_) = tell_all(base, kernels.nccl_id() if base.rank == 0 else b"")
        try:
            return cls(kernels.nccl_ranks(identity, base.rank, base.groups, most_common, most_own))
        except RuntimeError as error:
            raise lost(base.rank, f"cannot be connected by NCCL: {error}") from error

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """See `Carrier.exchange`. What is given must not change before the next call."""
        check_words(common, own, self.groups)
        if self._failed:
            raise lost(self.rank, "failed")
        self._exchange += 1
        try:
            found = self._ranks.exchange(self._exchange % 2**32, common, own)
        except RuntimeError as error:  # NcclError is one
            raise lost(self.rank, f"is cut off: {error}") from error
        if self._failed:  # what came after an abort may be anything
            raise lost(self.rank, "failed")
        for sender, (number, _, _) in enumerate(found):
            if number != self._exchange % 2**32:
                raise InternalError(f"a letter of exchange {number} of group {sender} came in {self._exchange}")
        return [Letter(np.asarray(to_all), np.asarray(to_one)) for _, to_all, to_one in found]

    def check(self) -> None:
        """Raises ClusterLost if NCCL has met with an error since."""
        with self._ending:
            if self._failed or self._closed:
                return
            try:
                self._ranks.check()
            except RuntimeError as error:
                raise lost(self.rank, f"is cut off: {error}") from error

    def abandon(self) -> None:
        """See `Carrier.abandon`. The others hear of it by the carrier that brought them together.

        NCCL gives memory of the GPU back, which waits for its kernels: the own one must not wait for others any more.
        """
        with self._ending:
            if not self._failed and not self._closed:
                self._failed = True
                self._ranks.abort()

    def close(self) -> None:
        """See `Carrier.close`."""
        with self._ending:
            if not self._failed and not self._closed:
                self._ranks.close()
            self._closed = True
