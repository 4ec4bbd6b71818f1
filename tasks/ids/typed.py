"""Ids that a person typed, and their positions among the ids of a graph."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from ..inputs.columns import is_uuid
from . import identity
from .display import display_id, parse_id
from .id_types import from_internal, to_internal
from .identity import Ids


def parse_ids(texts: Sequence[str], id_type: pa.DataType) -> Ids:
    """Typed ids in the internal form of a graph with ids of `id_type`. Raises ValueError for a text that is no id."""
    values = [parse_id(text, id_type) for text in texts]
    column = pa.array(values, pa.binary(16) if is_uuid(id_type) else id_type)
    return to_internal(pa.chunked_array([column]), id_type)


def positions_of(wanted: Ids, ids: Ids) -> NDArray[np.int64]:
    """The position of each wanted id among the ascending `ids`, or -1. Both are in the internal form."""
    own = identity.to_host(ids)
    if isinstance(own, pa.Array):
        found: NDArray[np.int64] = pc.index_in(wanted, value_set=own).fill_null(-1).to_numpy().astype(np.int64)
        return found
    if not len(own):
        return np.full(len(wanted), -1)
    at = np.minimum(np.searchsorted(own, wanted), len(own) - 1)
    return np.where(own[at] == wanted, at, -1)


def shown_ids(ids: Ids, positions: Sequence[int], id_type: pa.DataType) -> list[Any]:
    """The ids at some positions, as people read them."""
    own = identity.take(identity.to_host(ids), np.array(positions, np.int64))
    return [display_id(value.as_py()) for value in from_internal(own, id_type)]
