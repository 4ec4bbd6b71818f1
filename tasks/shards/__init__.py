"""Peeling of a graph that is stored once: rows cut by the third vertex, on any number of groups in step.

Start with `peeling`, the loop that every group runs; `carrier` has what takes its parcels to the others. May import
`kernels`.
"""

from .parcels import Carrier, MemoryCarrier, Parcel
from .peeling import PeeledShards, Progress, build_group, peel_shards

__all__ = ["Carrier", "MemoryCarrier", "Parcel", "PeeledShards", "Progress", "build_group", "peel_shards"]
