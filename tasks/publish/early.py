"""The columns of a bucket's edges that are known before λ, and how they are encoded while a GPU bounds the graph."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ... import kernels
from ...kernels.runtime.device import synchronize
from ...kernels.runtime.sizes import SizedArrays
from ..ids import identity
from ..ids.identity import Ids
from ..ingest.numbering import BucketEdges, BucketIds
from .encoded import EncodedColumns
from .lambda_columns import support_column
from .tables import EdgeEnds, encode_edges
from .writing import TableFormat


@dataclass(frozen=True)
class KnownEdges(SizedArrays):
    """What is known of the edges of one bucket before their λ. No kernel writes to the arrays."""

    ends: EdgeEnds
    """With ids in host memory. Their positions are arrays of the bucket's BucketEdges."""
    support: NDArray[np.int32]
    """[edges]"""

    def __sizeof__(self) -> int:
        """Without the ends: to move these out of a GPU's memory would free nothing, as the bucket keeps them."""
        return object.__sizeof__(self) + int(self.support.nbytes)


def known_edges(edges: BucketEdges, ids: BucketIds, names: Ids, support: NDArray[np.int32]) -> KnownEdges:
    """What is known of a bucket's edges. `names` are the ids of larger ends, `support` [edges] in row order."""
    ends = EdgeEnds(edges.low, edges.high, identity.to_host(ids.ids), identity.to_host(names))
    if not kernels.on_host(support):
        synchronize()
    return KnownEdges(ends, support)


def encode_known(how: TableFormat, file: int, known: KnownEdges) -> EncodedColumns:
    """The columns that are known of one of the bucket's files."""
    return encode_edges(how, known.ends, [support_column(known.support)], file)
