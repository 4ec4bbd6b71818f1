"""Least squares for the model of docs/scaling.md: sums of terms, and powers of edges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.optimize import nnls


@dataclass(frozen=True)
class Span:
    """Seconds or another amount, at best and at worst."""

    least: float
    most: float

    def __add__(self, other: Span) -> Span:
        return Span(self.least + other.least, self.most + other.most)

    def __mul__(self, factor: float) -> Span:
        return Span(self.least * factor, self.most * factor)

    def times(self, other: Span) -> Span:
        """The product of two that are positive."""
        return Span(self.least * other.least, self.most * other.most)

    def __str__(self) -> str:
        return f"{short(self.least)} - {short(self.most)}"


def short(value: float) -> str:
    """A number for a table."""
    return f"{value:.1f}" if value < 10 else f"{value:,.0f}"


@dataclass(frozen=True)
class Fitted:
    """Constants, and how well they do."""

    name: str
    terms: Mapping[str, float]
    """What a constant is for → the constant."""
    points: Sequence[tuple[str, float, float]]
    """What was fitted to: its name, measured, and as the fit has it."""

    @property
    def worst(self) -> float:
        """The largest relative error."""
        return max(abs(said / value - 1) for _, value, said in self.points)


class Fit(Fitted):
    """A sum of terms, each with its constant."""

    def __call__(self, *amounts: float) -> float:
        """What it says of other amounts."""
        return sum(constant * amount for constant, amount in zip(self.terms.values(), amounts, strict=True))

    def span(self, *amounts: float) -> Span:
        """The same, with the errors of the points in both directions."""
        errors = [value / said for _, value, said in self.points]
        return Span(self(*amounts) * min(errors), self(*amounts) * max(errors))


def fit_sum(name: str, terms: Sequence[str], points: Sequence[tuple[str, float, Sequence[float]]]) -> Fit:
    """Constants ≥ 0 with the least squared relative error; a point is its name, its value and an amount per term."""
    amounts = np.array([own for _, _, own in points], float)
    values = np.array([value for _, value, _ in points], float)
    constants, _ = nnls(amounts / values[:, None], np.ones(len(values)))
    return Fit(name, dict(zip(terms, constants.tolist(), strict=True)), _points(points, amounts @ constants))


class Curve(Fitted):
    """A power of the number of edges, times a constant."""

    def __call__(self, edges: float) -> float:
        """What it says of so many edges."""
        factor, power = self.terms.values()
        return float(factor * edges**power)


def fit_curve(name: str, points: Sequence[tuple[str, float, float]]) -> Curve:
    """The power with the least squared error of logarithms; a point is its name, its value and its edges."""
    edges = np.array([own for _, _, own in points])
    power, factor = np.polyfit(np.log(edges), np.log([value for _, value, _ in points]), 1)
    terms = {"factor": float(np.exp(factor)), "power": float(power)}
    return Curve(name, terms, _points(points, np.exp(factor) * edges**power))


def _points(points: Sequence[tuple[str, float, object]], said: np.ndarray) -> list[tuple[str, float, float]]:
    return [(name, value, float(own)) for (name, value, _), own in zip(points, said, strict=True)]
