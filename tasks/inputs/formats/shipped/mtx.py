"""Matrix Market. `formats.matrix_market` reads it."""

from __future__ import annotations

from ..input_format import InputFormat
from ..lines import BYTE_ORDER_MARK
from ..matrix_market import MATRIX_MARKET


class MatrixMarket(InputFormat):
    """The entries of a sparse matrix."""

    title = "Matrix Market"
    suffixes = (".mtx",)
    reading = "in pieces of 16 MiB"

    def begins(self, head: bytes) -> bool:
        """In any case, with or without a byte order mark."""
        return head.removeprefix(BYTE_ORDER_MARK)[: len(MATRIX_MARKET)].lower() == MATRIX_MARKET
