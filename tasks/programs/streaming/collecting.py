"""Buckets → blocks, as `delivery.collect_block` does it, for a block whose entries do not fit memory."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ....kernels.runtime.sizes import Allocator
from ...ids import order
from ...partition import RangePartitioner
from ..block import Block, Entries
from ..program import View
from .building import PIECE_BYTES, build_block_in_pieces


def collect_block_in_pieces(
    group: int,
    vertices: int,
    home: RangePartitioner,
    directed: bool,
    view: View,
    weighted: bool,
    parts: Mapping[int, Entries],
    allocator: Allocator,
    most_bytes: int,
) -> Block:
    """The same block as of `collect_block`. Entries take about `most_bytes` in memory at once; see
    `build_block_in_pieces`.
    """
    ends = np.concatenate(([0], home.cuts, [vertices]))
    number = order.shifted(np.arange(ends[group], ends[group + 1]), 0, vertices)
    senders = [parts[b] for b in sorted(parts)]
    most = max(1, most_bytes // PIECE_BYTES)
    block = build_block_in_pieces(group, home.partitions, vertices, number, senders, directed, view, allocator, most)
    if weighted and block.rows.weight is None:
        return replace(block, rows=replace(block.rows, weight=np.zeros(0)))
    return block
