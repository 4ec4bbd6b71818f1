"""Code two columns of strings as positions in their distinct strings, part by part, in bounded memory."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids import identity
from .left_out import LeftOut
from .reading import IdRows
from .weights import Weight

PART_BYTES = 2**26
"""Bytes of text that are buffered before they are coded."""


class StringCodes:
    """The distinct strings of the two id columns of a block, and the columns as positions in them. Mutable.

    Takes about three bytes of memory for each byte of PART_BYTES, and three for each byte of the distinct strings.
    """

    def __init__(self) -> None:
        self._parts: list[IdRows] = []
        self._buffered_bytes = 0
        self._runs: list[pa.LargeStringArray] = []
        self._codes: list[tuple[NDArray[np.int32], NDArray[np.int32]]] = []
        self.left_out = LeftOut()
        """Rows that were left out of the parts added so far."""
        self._weights: list[Weight] = []

    def add(self, part: IdRows) -> None:
        """Append rows."""
        self.left_out += part.left_out
        if part.weight is not None:
            self._weights.append(part.weight)
        self._parts.append(part)
        self._buffered_bytes += part.source.nbytes + part.target.nbytes
        if self._buffered_bytes >= PART_BYTES:
            self._code()

    def _code(self) -> None:
        columns = [part.source for part in self._parts] + [part.target for part in self._parts]
        half = len(self._parts)
        self._parts, self._buffered_bytes = [], 0
        ids, codes = identity.encode_all(columns)
        del columns
        if not len(ids):
            return
        self._runs.append(ids)
        self._codes.append((np.concatenate(codes[:half]), np.concatenate(codes[half:])))
        if sum(run.nbytes for run in self._runs[1:]) > self._runs[0].nbytes:
            self._merge()

    def _merge(self) -> None:
        ids, positions = identity.merge(self._runs)
        columns = (
            np.concatenate([position[code[end]] for position, code in zip(positions, self._codes, strict=True)])
            for end in range(2)
        )
        self._runs, self._codes = [ids], [(next(columns), next(columns))]

    @property
    def weight(self) -> Weight | None:
        """[rows] the weights of all parts; None if they have none."""
        return np.concatenate(self._weights) if self._weights else None

    def end(self) -> tuple[pa.LargeStringArray, NDArray[np.int32], NDArray[np.int32]]:
        """The distinct strings, ascending, and each column as positions in them (int32 [rows])."""
        if self._parts:
            self._code()
        if not self._runs:
            empty = np.zeros(0, np.int32)
            return identity.no_ids("string"), empty, empty
        if len(self._runs) > 1:
            self._merge()
        return self._runs[0], *self._codes[0]
