"""The operations that exist for both NumPy's arrays (`kernels.cpu`) and CuPy's (`kernels.gpu`).

Both packages implement `Backend` with the same names and parameters; a test compares them. The functions of the same
names in `kernels` document each operation and choose the backend by the type of an array. An operation that exists for
one array type only is not listed here: callers import it from its module.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from .filters import Changes, Filtering, Words
from .graph import FROM_THE_START, IntArray, LongArray, Nested, PeelingStart, Topology

if TYPE_CHECKING:
    from .cpu.shards.cut import Cut

Mask = NDArray[np.bool_]


class Peeling(Protocol):
    """The state of one subgraph's peeling; see `kernels.peeling`."""

    left: int
    """Number of edges still to be removed, without those of higher bands."""
    level: int
    """The next level."""
    levels: int
    """Number of levels at which edges were removed."""

    @property
    def low(self) -> IntArray:
        """[edges] λ of the removed edges, 0 for the others."""

    @property
    def count(self) -> IntArray:
        """[edges] remaining triangles; negative for removed edges."""

    def advance(self) -> None:
        """Remove the edges of the next level that has some, or of several levels."""


class Fixpoint(Protocol):
    """Scratch memory for fixpoint iterations in one graph; see `kernels.fixpoint`."""

    def evaluate(self, bound: IntArray, active: IntArray, by_one: bool) -> IntArray:
        """Lower the bound of each active edge once, in place. Returns the edges to evaluate again."""


class Backend(Protocol):
    """The operations for one array type."""

    def row_numbers(self, offsets: LongArray) -> IntArray: ...

    def lookup(self, keys: IntArray | LongArray, values: IntArray | LongArray) -> IntArray: ...

    def supports(self, offsets: LongArray, high: IntArray, share: int = 0, shares: int = 1) -> IntArray: ...

    def merge_rows(self, low: Words, high: Words, runs: LongArray, vertices: int) -> Any: ...

    def third_vertex_rows(self, rows: Any, cut: Cut, first: int, shards: int) -> Any: ...

    def count_by_third_vertex(
        self, rows: Any, starts: Words, low: Words, high: Words, sums: IntArray
    ) -> tuple[IntArray, int]: ...

    def adjacency(self, topology: Topology) -> Any: ...

    def compact(self, rows: Any, live: Mask) -> Any: ...

    def Peeling(
        self,
        topology: Topology,
        count: IntArray,
        start: PeelingStart = FROM_THE_START,
        higher: Mask | None = None,
    ) -> Peeling: ...

    def Filtering(self, topology: Topology, count: IntArray, rows: Any = None) -> Filtering: ...

    def Changes(self, count: IntArray, amounts: IntArray) -> Changes: ...

    def Fixpoint(self, topology: Topology, rows: Any, highest: int) -> Fixpoint: ...

    def nest(self, low: IntArray, high: IntArray, level: IntArray, vertices: int) -> Nested: ...

    def take(self, values: NDArray[Any], index: NDArray[Any]) -> NDArray[Any]: ...

    def store(self, target: NDArray[Any], index: NDArray[Any], values: NDArray[Any]) -> None: ...

    def nonzero(self, values: IntArray | Mask) -> IntArray: ...

    def number_marked(self, marked: Mask) -> IntArray: ...

    def join(self, parts: Sequence[NDArray[Any]]) -> NDArray[Any]: ...

    def bincount(self, index: IntArray | LongArray, size: int) -> LongArray: ...

    def scatter_sum(self, index: IntArray, values: IntArray, size: int) -> LongArray: ...

    def scatter_max(self, index: IntArray, values: IntArray, size: int) -> IntArray: ...

    def positions_by_group(self, group: NDArray[np.int16], groups: int) -> list[IntArray]: ...

    def order_pairs(self, low: IntArray, high: IntArray, lows: int, highs: int) -> IntArray | LongArray: ...
