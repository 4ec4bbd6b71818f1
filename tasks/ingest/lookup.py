"""The ids of a bucket's vertices by dense number, and dense numbers by id."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ..ids import typed
from ..ids.identity import Ids
from .numbering import BucketIds


def ids_of(numbers: Sequence[int], starts: NDArray[np.int64], id_type: pa.DataType, own: BucketIds) -> dict[int, Any]:
    """The ids, for a message, of those vertices `numbers` that are in a bucket, by dense number."""
    first, last = int(starts[own.bucket]), int(starts[own.bucket + 1])
    here = [number for number in numbers if first <= number < last]
    return dict(zip(here, typed.shown_ids(own.ids, [number - first for number in here], id_type), strict=True))


def numbers_of(wanted: Ids, starts: NDArray[np.int64], own: BucketIds) -> NDArray[np.int64]:
    """The dense number of each of the `wanted` ids that is in a bucket, and -1 for others."""
    position = typed.positions_of(wanted, own.ids)
    return np.where(position >= 0, position + starts[own.bucket], -1)
