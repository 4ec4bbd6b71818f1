"""The out-edges of the vertices of a block, for supersteps against the direction of edges."""

from __future__ import annotations

import numpy as np

from .... import kernels
from ....kernels import programs as gathers
from ....kernels.graph import InRows
from ...ids import order
from ...partition import Partitioner
from ...shards.carriers.carrier import Carrier
from ..block import Block, Entries, build_block
from ..mirrors import Mirrors
from ..words import NO_WORDS, pack, unpack


def mirrors_of(block: Block, home: Partitioner, carrier: Carrier, alternates: bool) -> list[Mirrors]:
    """The mirrors of a block; and, if a program `alternates` and edges have directions, of the block with the out-edges
    of the same vertices, in host memory.

    All groups must call this at the same time: it takes some exchanges.
    """
    found = [Mirrors(block, home, carrier)]
    if alternates and not block.mutual:
        transposed = gathers.transpose_rows(block.rows, len(block.sources))
        found.append(Mirrors(reversed_block(block, found[0], transposed), home, carrier))
    return found


def reversed_block(block: Block, mirrors: Mirrors, transposed: InRows) -> Block:
    """The block with the out-edges of the same vertices, without weights. Each group sends entries to the groups of
    their sources. `transposed` are the rows by source.
    """
    if mirrors.carrier.groups == 1:  # then all vertices are sources, and own
        return Block(block.group, block.vertices, block.view, block.number, transposed, block.sources, False, False)
    target = block.number[kernels.row_numbers(block.rows.offsets)].astype(np.int64)
    homes = np.empty(len(block.sources), np.int16)
    for g, sources in enumerate(mirrors.sources_of):
        homes[sources] = g
    by, cuts = order.group(homes[block.rows.source], mirrors.carrier.groups)
    source = block.sources[block.rows.source].astype(np.int64)
    sent = [pack(source[entries], target[entries]) for entries in np.split(by, cuts[1:-1])]
    own = sent[block.group]
    packets = mirrors.exchange(NO_WORDS, [NO_WORDS if g == block.group else words for g, words in enumerate(sent)])
    parts = [unpack(own if g == block.group else packet.own, [np.int64, np.int64]) for g, packet in enumerate(packets)]
    kind = block.number.dtype
    source, target = (np.concatenate([part[end] for part in parts]).astype(kind) for end in (0, 1))
    entries = Entries(target, source)
    return build_block(block.group, mirrors.carrier.groups, block.vertices, block.number, entries, True, "in")
