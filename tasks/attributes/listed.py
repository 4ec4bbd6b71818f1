"""The ids of a table of vertices as a part of the input that has no edges."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from ..device import MemorySpace
from ..ids.identity import Ids
from ..ingest.blocks import BlockEdges
from ..ingest.left_out import NONE
from ..inputs.sources import Source
from .joining import read_attributes
from .source import AttributeBlock, AttributeSource


def read_listed_ids(
    source: AttributeSource, edges: Source, block: AttributeBlock, number: int, space: MemorySpace
) -> BlockEdges:
    """The ids of a block as a block of the input `edges`, with this number and without edges, so that their vertices
    are in the graph. Integer ids are placed in `space`. Raises InputError as `read_attributes` does.
    """
    ids = read_attributes(replace(source, schema=pa.schema([])), block).ids
    own = pc.unique(ids)
    distinct: Ids = own if pa.types.is_large_string(own.type) else space.place(own.to_numpy())
    none = space.place(np.zeros(0, np.int32))
    return BlockEdges(
        number,
        distinct,
        none,
        none,
        0,
        0,
        0,
        NONE,
        np.zeros_like(none, np.uint8, shape=(len(own),)) if edges.bipartite == "refuse" else None,
        none.astype(np.uint8) if edges.directed else None,
        np.zeros(0) if edges.weights is not None else None,
    )
