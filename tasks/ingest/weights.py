"""Weights of rows as float64, and which of them cannot be used."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids.display import display_id
from ..inputs.formats.form import Weights

Weight = NDArray[np.float64]


def weights_of(column: pa.ChunkedArray) -> Weight:
    """A column of numbers as float64 [rows]. Nulls become NaN, and -0.0 becomes 0.0, which equals it in other bits."""
    values: Weight = column.cast(pa.float64(), safe=False).to_numpy().astype(np.float64, copy=False)
    return values + 0.0


def first_unusable(weight: Weight, column: pa.ChunkedArray, nonnegative: bool) -> tuple[int, str] | None:
    """The position of the first weight that is null, not finite or, if `nonnegative`, below 0; and what it is.

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
