"""Packed rows: both ids of a row in one number, and how such rows become numbered edges in buckets.

One sort of the rows of many blocks replaces the cleaning of each block. As ids are small, a table over their range
tells which of them are vertices, so one exchange replaces the three that other ids take.
"""

from .buckets import number_keys, number_packed, send_keys
from .rows import PackedFacts, PackedRows, can_pack, facts_of, has_dense_ids, pack, read_packed, unpack

__all__ = [
    "PackedFacts",
    "PackedRows",
    "can_pack",
    "facts_of",
    "has_dense_ids",
    "number_keys",
    "number_packed",
    "pack",
    "read_packed",
    "send_keys",
    "unpack",
]
