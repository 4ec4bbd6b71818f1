"""Least squares for the model: sums of terms whose constants are not negative, and powers of the number of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from .spans import Span

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Measured:
    """A measured value, and how much of each term is in it."""

    name: str
    value: float
    amounts: tuple[float, ...]


@dataclass(frozen=True)
class Fit:
    """A sum of terms, each an amount times a constant."""

    name: str
    constants: Mapping[str, float]
    """What a constant is for → the constant."""
    points: Sequence[Measured]

    def __call__(self, *amounts: float) -> float:
        """The sum for these amounts."""
        return sum(constant * amount for constant, amount in zip(self.constants.values(), amounts, strict=True))

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return max(abs(self(*point.amounts) / point.value - 1) for point in self.points)

    def span(self, *amounts: float) -> Span:
        """The sum for these amounts, with the errors of the points in both directions."""
        ratios = Span.of(point.value / self(*point.amounts) for point in self.points)
        return ratios * self(*amounts)

    def range_of(self, term: str) -> Span:
        """The values of one constant with which the sum meets each of the points that have this term."""
        at = list(self.constants).index(term)
        rest = {name: value for name, value in self.constants.items() if name != term}
        found = []
        for point in self.points:
            others = [amount for place, amount in enumerate(point.amounts) if place != at]
            if point.amounts[at]:
                explained = sum(value * amount for value, amount in zip(rest.values(), others, strict=True))
                found.append(max(0.0, (point.value - explained) / point.amounts[at]))
        return Span.of(found)


def fit_sum(name: str, terms: Sequence[str], points: Sequence[Measured]) -> Fit:
    """Constants that are not negative, with the least sum of squared relative errors."""
    values = np.array([point.value for point in points])
    shares = np.array([point.amounts for point in points], float) / values[:, None]
    return Fit(name, dict(zip(terms, _not_negative(shares).tolist(), strict=True)), points)


def _not_negative(shares: Floats) -> Floats:
    """The x ≥ 0 with the least |shares x - 1|: the best of the solutions in which some terms are 0 and others free.

    Tries all 2^n sets of free terms, so it is for few terms.
    """
    columns = shares.shape[1]
    best, least = np.zeros(columns), float(len(shares))
    for count in range(1, columns + 1):
        for free in map(list, combinations(range(columns), count)):
            scale = np.linalg.norm(shares[:, free], axis=0)
            if not scale.all():
                continue
            solved, *_ = np.linalg.lstsq(shares[:, free] / scale, np.ones(len(shares)), rcond=None)
            found = np.zeros(columns)
            found[free] = solved / scale
            error = float(np.sum((shares @ found - 1) ** 2))
            if found.min() >= 0 and error < least:
                best, least = found, error
    return best


@dataclass(frozen=True)
class Curve:
    """A power of the number of edges, times a factor."""

    name: str
    factor: float
    power: float
    points: Sequence[Measured]
    """`amounts` has the number of edges."""

    def __call__(self, edges: float) -> float:
        """The value at so many edges."""
        return float(self.factor * edges**self.power)

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return max(abs(self(*point.amounts) / point.value - 1) for point in self.points)


def fit_curve(name: str, points: Sequence[Measured]) -> Curve:
    """The power with the least sum of squared errors of the logarithms."""
    edges, values = (np.log([own(point) for point in points]) for own in (_edges, _value))
    power, factor = np.polyfit(edges, values, 1)
    return Curve(name, float(np.exp(factor)), float(power), points)


def _edges(point: Measured) -> float:
    return point.amounts[0]


def _value(point: Measured) -> float:
    return point.value
