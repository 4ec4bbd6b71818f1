"""Which shards each group has."""

from __future__ import annotations


def first_shards(groups: int, shards: int) -> list[int]:
    """[groups + 1] the first shard of each group; groups have shards in runs, as even as can be."""
    return [rank * shards // groups for rank in range(groups + 1)]
