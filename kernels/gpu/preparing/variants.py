"""The sources of our CUDA kernels, each with the sets of macros that it is compiled with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..runtime.constants import SHARD_WARPS_ALONE
from ..tables import SIZES

_TABLES: list[Mapping[str, int]] = [
    {"SIDE": side, "SLOTS": slots, "WARPS": warps, "ONE_WARP": one_warp}
    for side in (0, 1)
    for _, slots, warps, one_warp in SIZES
]
_VALUES: list[Mapping[str, int]] = [
    *({"VALUE": value, "ALONG": 0, "LARGEST": largest} for value in (0, 1) for largest in (0, 1)),
    *({"VALUE": 2, "ALONG": along, "LARGEST": largest} for along in (0, 1, 2) for largest in (0, 1)),
]
VARIANTS: Mapping[str, Sequence[Mapping[str, int]]] = {
    "shards/peel": [{"SYSTEM": 0}, {"SYSTEM": 1}, {"SYSTEM": 1, "WARPS": SHARD_WARPS_ALONE}],
    "peel": [{}],
    "compact/peel": [{"APART": apart} for apart in (0, 1)],
    "filter": [{}],
    "intersect": [{}, *_TABLES],
    "programs/extremes": _VALUES,
    "programs/push": _VALUES,
    "shards/third_vertex": [{}, *_TABLES],
    "compact/build": [{"APART": apart} for apart in (0, 1)],
    "arrays/count": [{}],
    "arrays/total": [{}],
    "changes": [{}],
    "fixpoint": [{}],
    "nest": [{}],
    "programs/classes": [{}, {"PER_LANE": 1, "LONGEST": 32}],
    "programs/connected": [{"VALUE": value} for value in (0, 1)],
    "programs/counts": [{"VALUE": value} for value in (0, 1)],
    "programs/exact": [{}],
    "programs/first": [{}],
    "programs/links": [{}],
    "programs/ranks": [{}],
    "programs/search": [{}],
    "programs/sums": [{"ALONG": along} for along in (0, 1, 2)],
    "rows": [{}],
    "shards/rows": [{}],
}
"""File → its sets of macros. Files that take longest to compile come first."""
