"""The interface of a program that searches from many sources."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from ...verify.program_checks import CheckByArcs, CheckByEdges
from ..program import Column, State, Vertices, View

Facts: TypeAlias = Mapping[str, Any]
"""Facts of the whole graph by name, as JSON values."""


@dataclass(frozen=True)
class PathsFound:
    """Sums over the sources of dependencies: the shares of shortest paths from a source that lead through a vertex."""

    score: NDArray[np.float64]
    """[own] sums of the dependencies of each source on the vertex."""
    squares: NDArray[np.float64]
    """[own] sums of their squares."""


@dataclass(frozen=True)
class LevelsFound:
    """Distances from sources. The distance of a source to itself does not count."""

    reached: NDArray[np.int64]
    """[own] number of sources that reach the vertex."""
    distance: NDArray[np.int64]
    """[own] the sum of their distances to the vertex."""
    squares: NDArray[np.int64]
    """[own] the sum of the squares of these distances."""
    least: NDArray[np.int32]
    """[own] lower bound of the largest distance from the vertex to one that it reaches."""
    most: NDArray[np.int32]
    """[own] upper bound; UNBOUNDED if there is none."""
    pairs: Sequence[int]
    """[levels] number of pairs of a source and a vertex by their distance."""
    pair_squares: Sequence[float]
    """[levels] the sum over the sources of the squares of their numbers of vertices at a distance."""
    span: Span
    """Bounds of diameter and radius."""


UNBOUNDED = np.int32(2**31 - 1)


@dataclass(frozen=True)
class Span:
    """Bounds of the largest (diameter) and the smallest (radius) eccentricity of the vertices that reach the most
    vertices: all vertices of a connected graph, or those of its largest component. The eccentricity of a vertex is its
    largest distance to a vertex that it reaches.
    """

    size: int
    """The most vertices that a searched vertex reaches, itself included."""
    diameter: tuple[int, int | None]
    """Lower and upper bound; None if there is none."""
    radius: tuple[int, int | None]
    searches: int
    """Further sources that were searched from for these bounds."""


@dataclass(frozen=True)
class SourceSample:
    """The sources of a run."""

    total: int
    """Number of vertices of the graph."""
    sources: NDArray[np.int64]
    """[sources] dense numbers of those that were searched from, distinct."""

    @property
    def scale(self) -> float:
        """The factor from a sum over the sources to an estimate of the sum over all vertices; 1 if all are sources."""
        return self.total / max(len(self.sources), 1)

    def half_width(self, total: Any, squares: Any) -> Any:
        """Half the width of the 95 % interval of an estimated sum over all vertices, from the sum and the sum of
        squares over the sources, as numbers or arrays; 0 for all vertices, infinite for one source.

        The interval is the normal one of simple random sampling without replacement (Cochran, "Sampling techniques",
        3rd edition, 1977, section 2.8): it holds asymptotically, not for a few sources with rare large values.
        """
        count = len(self.sources)
        if count == self.total:
            return total * 0.0
        if count < 2:
            return total * 0.0 + np.inf
        variance = np.maximum(squares - total * (total / count), 0.0) / (count - 1)
        return NORMAL_95 * self.total * np.sqrt(variance / count * (1 - count / self.total))

    def certain_half_width(self, total: Any, squares: Any, most: float) -> Any:
        """Half the width of an interval that contains the sum over all vertices with a probability of at least 95 %,
        for any values from 0 to `most`; arguments and result as in `half_width`.

        The smaller of two bounds for sampling without replacement, each with half of the 5 %: that of `certain_spread`,
        and the empirical Bernstein-Serfling bound (Bardenet and Maillard, "Concentration inequalities for sampling
        without replacement", Bernoulli 21(3), 2015, theorem 4.3).
        """
        count = len(self.sources)
        if count == self.total:
            return total * 0.0
        doubt = np.log(2 * 5 / (0.05 / 2))  # either side can fail in five ways
        deviation = np.sqrt(np.maximum(squares - total * (total / count), 0.0) / count)
        by_deviation = deviation * np.sqrt(2 * self._left * doubt / count)
        by_range = (7 / 3 + 3 / np.sqrt(2)) * most * doubt / count
        return np.minimum(self.total * (by_deviation + by_range), self.certain_spread(most, 0.05 / 2))

    def certain_spread(self, most: float, doubt: float) -> float:
        """The Hoeffding-Serfling bound of the error of an estimated sum over all vertices, of values from 0 to `most`:
        it fails with the probability `doubt` or less (Serfling, Annals of Statistics 2, 1974; Bardenet and Maillard,
        corollary 2.5).
        """
        count = max(len(self.sources), 1)
        return float(self.total * most * np.sqrt(self._left * np.log(2 / doubt) / (2 * count)))

    @property
    def _left(self) -> float:
        """What sampling without replacement leaves of the variance in these bounds; 0 for all vertices."""
        count, total = max(len(self.sources), 1), max(self.total, 1)
        return min(1 - (count - 1) / total, (1 - count / total) * (1 + 1 / count))


NORMAL_95 = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class SourceProgram(ABC):
    """Base of programs that search from all vertices, or from some, and sum up what the searches find.

    Subclasses are frozen dataclasses. Their docstrings state the same as those of `Program`.
    """

    state: ClassVar[Mapping[str, str]]
    """Names and types of the arrays of the result."""

    columns: ClassVar[Mapping[str, Column]] = {}
    """See `Program.columns`."""

    check: ClassVar[CheckByEdges | CheckByArcs | None] = None
    """See `Program.check`."""

    search: ClassVar[Literal["paths", "levels"]]
    """What a search finds: `paths`, see `PathsFound`; `levels`, see `LevelsFound`."""

    view: ClassVar[View] = "in"
    """See `Program.view`. Searches follow edges in their direction."""

    edges: ClassVar[Mapping[str, str]] = {}
    by_support: ClassVar[bool] = False
    along: ClassVar[str] = ""
    weighs: ClassVar[bool] = False
    nonnegative: ClassVar[bool] = False
    """As for `Program`: it has no columns of edges, and uses no weights."""

    sources: int | None
    """Number of sources; None for all vertices."""
    seed: int
    """Selects the sources."""
    table: bool = False
    """Whether all distances are kept, for `levels`, of a graph of at most `block.MOST_VERTICES` vertices."""
    batch: int
    """Sources that are searched from at once: 1 to 64 for `paths`, a multiple of 64 for `levels`."""

    @abstractmethod
    def finish(self, v: Vertices, found: Any, sample: SourceSample, mutual: bool) -> tuple[State, Facts]:
        """The result of each vertex, arrays [vertices], and facts that are the same in all groups.

        `mutual` is whether all edges lead both ways, as in an undirected graph.
        """
