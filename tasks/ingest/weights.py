"""Weights of rows as float64: which weights cannot be used, and how the weights of repeated rows are combined.

A combined weight does not depend on the order of the rows, bit by bit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from math import fsum, inf

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ...kernels.runtime.sizes import SizedArrays
from ..ids import order
from ..ids.display import display_id
from ..ids.order import Ints
from ..inputs.formats.form import Repeats, Weights
from .directions import DOWN, UP

Weight = NDArray[np.float64]


def weights_of(column: pa.ChunkedArray) -> Weight:
    """A column of numbers as float64 [rows]. Nulls become NaN, and -0.0 becomes 0.0, equal with other bits."""
    values: Weight = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)
    return values + 0.0


def first_unusable(weight: Weight, column: pa.ChunkedArray, nonnegative: bool) -> tuple[int, str] | None:
    """The position of the first weight that is null, not finite or, if `nonnegative`, below 0; and its value as text.

    None if there is none. `weight` is `weights_of(column)`.
    """
    wrong = ~np.isfinite(weight)
    if nonnegative:
        wrong |= weight < 0
    if not wrong.any():
        return None
    at = int(wrong.argmax())
    value = column[at].as_py()
    return at, "null" if value is None else str(value)


def unusable_weight(path: str, row: int, value: str, ends: Sequence[object], weights: Weights) -> str:
    """The message for a weight of an edge between two ids, in a row of the file at `path`."""
    names = " to ".join(repr(display_id(end)) for end in ends)
    wanted = "finite numbers of at least 0" if weights.nonnegative else "finite numbers"
    return (
        f"{path}: row {row:,}, counted from 0, has the weight {value} in column {weights.column!r}, for the edge from "
        f"{names}: the weights of this run must be {wanted}; leave such rows out with --where, or mend them"
    )


_EXACT_BITS = 52
"""Sums whose terms have their bits within this width are exact in any order."""


@dataclass(frozen=True)
class Combined(SizedArrays):
    """The distinct pairs of some rows, sorted by (low, high)."""

    low: Ints
    high: Ints

    ways: NDArray[np.uint8] | None
    """[pairs] the union of the direction bits; None for undirected rows."""

    weight: Weight
    """[arcs] one weight for each direction bit of each pair, UP before DOWN; [pairs] for undirected rows."""

    refused: tuple[int, ...] = ()
    """The position of the first pair that has no weight, and the number of its rows; empty if all have one."""


def combine_rows(
    low: Ints, high: Ints, ways: NDArray[np.uint8] | None, weight: Weight, lows: int, rule: Repeats
) -> Combined:
    """The distinct pairs of rows, and the weight of each pair, or of each direction of it.

    `ways` [rows] has one direction bit each. `lows` exceeds every value of `low`. With the rule `error`, pairs with
    several rows get no weight; with `sum`, the float64 nearest to the exact sum, and none if that is infinite.
    """
    wide = high.astype(np.int64)
    if ways is not None:
        wide = 2 * wide + (ways == DOWN)
    values, (code,) = order.encode(wide)
    by = order.order_pairs(low.astype(np.int32, copy=False), code, lows, len(values))
    low, code, weight = low[by], code[by], weight[by]
    starts = np.flatnonzero(order.heads(low) | order.heads(code))
    low, wide = low[starts], values[code[starts]]
    sizes = np.diff(starts, append=len(code))
    found = _combined(weight, starts, sizes, rule)
    bad = (sizes > 1) if rule == "error" else ~np.isfinite(found)
    if ways is None:
        return Combined(low, wide.astype(high.dtype), None, found, _refused(bad, sizes, np.arange(len(low))))
    one = (wide >> 1).astype(high.dtype)
    first = order.heads(low) | order.heads(one)
    pair = np.cumsum(first) - 1
    union = ((wide & 1) + UP).astype(np.uint8)[first]
    union[pair[~first]] = UP | DOWN
    return Combined(low[first], one[first], union, found, _refused(bad, sizes, pair))


def _refused(bad: NDArray[np.bool_], sizes: Ints, pair: Ints) -> tuple[int, ...]:
    if not bad.any():
        return ()
    at = int(bad.argmax())
    return int(pair[at]), int(sizes[at])


def _combined(weight: Weight, starts: Ints, sizes: Ints, rule: Repeats) -> Weight:
    """[groups] the combined weight of each run of rows."""
    if len(starts) == len(weight) or rule == "error":
        return weight[starts]
    if rule == "min":
        return np.minimum.reduceat(weight, starts)
    if rule == "max":
        return np.maximum.reduceat(weight, starts)
    with np.errstate(over="ignore", invalid="ignore"):
        found: Weight = np.add.reduceat(weight, starts)
        rounded = np.flatnonzero((sizes > 2) & ~_are_exact(weight, starts))
    for group in rounded.tolist():
        found[group] = _exact(weight[starts[group] : starts[group] + sizes[group]])
    return found + 0.0


def _are_exact(weight: Weight, starts: Ints) -> NDArray[np.bool_]:
    """[groups] whether the sum of a group is exact in any order: all its terms are multiples of one unit, and the sum
    of their magnitudes is a small enough number of units.
    """
    mantissa, exponent = np.frexp(weight)
    whole = np.ldexp(mantissa, 53).astype(np.int64)
    zeros = np.frexp((whole & -whole).astype(np.float64))[1] - 1  # of the lowest bits
    unit = np.where(whole == 0, 1024, exponent - 53 + zeros)
    least = np.minimum.reduceat(unit, starts)
    small: NDArray[np.bool_] = np.add.reduceat(np.abs(weight), starts) < np.ldexp(
        1.0, np.minimum(least + _EXACT_BITS, 1023)
    )
    return small


def _exact(weights: Weight) -> float:
    """The float64 nearest to the exact sum; infinite if it is too large for a float64."""
    try:
        return fsum(weights.tolist())
    except OverflowError:  # a part of the sum is too large; the sum itself may not be
        total = sum(map(Fraction, weights.tolist()))
        try:
            return float(total)
        except OverflowError:
            return inf
