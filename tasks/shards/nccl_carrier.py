"""Letters between groups on GPUs of their own through NCCL. Another carrier brings the groups together."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ... import kernels
from ..errors import InternalError, UsageError
from .carrier import Carrier, Letter, Words, check_words, lost
from .telling import tell_all

if TYPE_CHECKING:
    from ...kernels.gpu.nccl import Ranks

__all__ = ["NcclCarrier"]


class NcclCarrier:
    """Carries between GPUs; see `Carrier`. `open` gives it. Lost groups are noticed by others: they call `abandon`.

    NCCL opens connections of its own, without TLS.
    """

    name = "nccl"

    def __init__(self, ranks: Ranks) -> None:
        self.rank, self.groups = ranks.rank, ranks.count
        self._ranks = ranks
        self._exchange = 0
        self._failed = self._closed = False

    @classmethod
    def open(cls, base: Carrier, most_common: int, most_own: int) -> NcclCarrier:
        """Meet the groups that `base` has brought together. Letters have at most so many words to all, and to one.

        Raises UsageError where NCCL cannot be had, or two groups have one GPU.
        """
        why = kernels.nccl_lack()
        told = tell_all(base, f"{why}\n{kernels.device().machine} {kernels.device().bus}".encode())
        for text in told:
            reason = text.decode().partition("\n")[0]
            if reason:
                raise UsageError(f"bounding.carrier is nccl, and {reason}; or use bounding.carrier=auto")
        if len(set(told)) < len(told):
            raise UsageError("bounding.carrier is nccl, and two workers have one GPU: use bounding.carrier=auto")
        (identity, *_) = tell_all(base, kernels.nccl_id() if base.rank == 0 else b"")
        return cls(kernels.nccl_ranks(identity, base.rank, base.groups, most_common, most_own))

    def exchange(self, common: Words, own: Sequence[Words]) -> list[Letter]:
        """See `Carrier.exchange`."""
        check_words(common, own, self.groups)
        if self._failed:
            raise lost(self.rank, "failed")
        self._exchange += 1
        mine = Letter(common.copy(), own[self.rank].copy())
        try:
            found = self._ranks.exchange(self._exchange, common, own)
        except RuntimeError as error:  # NcclError is one
            raise lost(self.rank, f"is cut off: {error}") from error
        if self._failed:  # what came after an abort may be anything
            raise lost(self.rank, "failed")
        for sender, (number, _, _) in enumerate(found):
            if number != self._exchange % 2**32:
                raise InternalError(f"a letter of exchange {number} of group {sender} came in {self._exchange}")
        letters = [Letter(np.asarray(to_all), np.asarray(to_one)) for _, to_all, to_one in found]
        letters[self.rank] = mine
        return letters

    def abandon(self) -> None:
        """See `Carrier.abandon`. The others hear of it by the carrier that brought them together."""
        if not self._failed and not self._closed:
            self._failed = True
            self._ranks.abort()

    def close(self) -> None:
        """See `Carrier.close`."""
        if not self._failed and not self._closed:
            self._ranks.close()
        self._closed = True
