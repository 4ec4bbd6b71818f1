"""Constants that Python and CUDA share. `source` puts them before a source as macros."""

from __future__ import annotations

from collections.abc import Mapping

from ...gpu_shards import MAX_PEERS
from ...graph import GONE, LEIDEN_CLASSES

CASCADE_WARPS = 16
"""Warps of a block in cascade.cuh."""
CASCADE_WORK_BYTES = 8 * (24 + 24 + 4 + 4) + 192 * 12 + 192 * 12
"""Shared memory of one warp, `Work` in cascade.cuh."""
CASCADE_HEAVY_PARTS = 2**20
"""Capacity of the list of parts of heavy edges, in parts a round."""

FRONTIER_BINS = 22 << 8
"""Bins in which frontiers/grouping.cuh groups a frontier; enough for 2^29 vertices."""
LEAST_GROUPED = 2**16
"""The smallest frontier that is grouped."""

STRING_DIGIT = 7
"""Bytes of a string that a pass of the sort compares; see arrays/strings.cu."""

STREAM_PART = 1024
"""Maximum number of sets that one team looks up in a table; see tables.cuh."""

SHARD_WARPS = 16
"""Warps of a block in shards/round.cuh. Two blocks share a multiprocessor that has room for them."""
SHARD_WARPS_ALONE = 32
"""Warps of a block that has a multiprocessor to itself while other multiprocessors are left free."""
SHARD_WORK_BYTES = 32 * (4 * 4 + 8) + 192 * 8 + 128 * 8 + 192 + 32 * 4 + 8
"""Shared memory of one warp, `Work` in shards/round.cuh."""
SHARD_HEAVY_PARTS = 2**20
"""Capacity of the list of parts of heavy edges, in parts a round."""
HALF_ROLE = 2**28
"""A half is its role times this, plus a count from -2^27 to 2^27 - 1; see shards/count.cuh."""
HALF_REMOVED = -4 * HALF_ROLE
"""The half of an edge that was removed at level k is this plus k."""
HALF_REMAINS = -HALF_ROLE - HALF_ROLE // 2
"""A half of at least this belongs to an edge that has not been removed."""
SHORT_PART = 8
"""Rows of a shard with at most this many entries have no hash table."""
NEWS_QUIT, NEWS_LOST = 8, 16
"""Bits of a shard's news that Python reads and writes: time is up; another shard has failed."""
NEVER = 2**32 - 1
"""Turn in the posts of a peer that will not send again."""
STATE_HALVES = 9
"""Index of the 32-bit word `halves` in State of shards/state.cuh. Python reads it and the words after it."""
STATE_WORDS, SUMS_WORDS = 16, 15
"""32-bit words of State and 64-bit words of Sums in shards/state.cuh."""

LEIDEN_FEW, LEIDEN_MANY = 64, 1024
"""Most entries of a row that a warp sums, and of one that a block sums in shared memory, in leiden.cu."""
LEIDEN_WARPS = 8
"""Warps of a block in leiden.cu."""

GATHER_PER_LANE, GATHER_LONGEST = 4, 2**11
"""Entries of a row for each of up to 32 lanes, and of a part of a long row; see programs/classes.cuh."""
SHORT_LONGEST = 32
"""Entries of a row that a warp gathers with a lane an entry, in programs/counts.cu."""
EXACT_LIMBS = 66
"""32-bit digits that represent any float64 in units of 2^-1074."""

EVERY_FILE: Mapping[str, int] = {"GONE_COUNT": GONE}
"""Macros of all sources."""
_CASCADE = {"WARPS": CASCADE_WARPS, "WORK_BYTES": CASCADE_WORK_BYTES, "HEAVY_PARTS": CASCADE_HEAVY_PARTS}
_TABLES = {"PART": STREAM_PART}
_GATHER = {"PER_LANE": GATHER_PER_LANE, "LONGEST": GATHER_LONGEST}
_HALVES = {"HALF_ROLE": HALF_ROLE, "HALF_REMOVED": HALF_REMOVED, "HALF_REMAINS": HALF_REMAINS}
BY_FILE: Mapping[str, Mapping[str, int]] = {
    "arrays/strings": {"DIGIT": STRING_DIGIT},
    "filter": _CASCADE,
    "leiden": {"FEW": LEIDEN_FEW, "MANY": LEIDEN_MANY, "WARPS": LEIDEN_WARPS, "CLASSES": LEIDEN_CLASSES},
    "peel": {**_CASCADE, "BINS": FRONTIER_BINS, "LEAST_GROUPED": LEAST_GROUPED},
    "intersect": _TABLES,
    "programs/classes": _GATHER,
    "programs/counts": {"PER_LANE": 1, "LONGEST": SHORT_LONGEST},
    "programs/exact": {"LIMBS": EXACT_LIMBS},
    "programs/extremes": _GATHER,
    "programs/sums": _GATHER,
    "shards/third_vertex": _TABLES,
    "shards/rows": {"SHORT_PART_ENTRIES": SHORT_PART, **_HALVES},
    "shards/peel": {
        "WARPS": SHARD_WARPS,
        "WORK_BYTES": SHARD_WORK_BYTES,
        "HEAVY_PARTS": SHARD_HEAVY_PARTS,
        "SHORT_PART_ENTRIES": SHORT_PART,
        "MAX_SHARDS": MAX_PEERS,
        "NEWS_QUIT": NEWS_QUIT,
        "NEWS_LOST": NEWS_LOST,
        "TURN_NEVER": NEVER,
        "STATE_HALVES": STATE_HALVES,
        "STATE_WORDS": STATE_WORDS,
        "SUMS_WORDS": SUMS_WORDS,
        **_HALVES,
    },
}
"""Macros of one source; a kernel's own definitions override them."""
