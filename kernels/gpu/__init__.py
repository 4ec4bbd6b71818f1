"""The GPU twins: CUDA kernels over CuPy arrays."""

from .cascade import Cascade
from .fixpoint import Fixpoint
from .intersect import compile_all, intersect
from .lists import pack_lists
from .lookup import lookup
from .nest import nest
from .peel import Peeling
from .places import maxima_at, positions, sums_at
from .reband import reband
from .rows import adjacency, compact, row_numbers
from .shard_mail import DirectMail, RelayedMail, ShardMailbox
from .shards import ShardPeeling
from .sort import order_pairs, sort_keys
from .transfer import synchronize, to_device, to_host, trim

__all__ = [
    "Cascade",
    "DirectMail",
    "Fixpoint",
    "Peeling",
    "RelayedMail",
    "ShardMailbox",
    "ShardPeeling",
    "adjacency",
    "compact",
    "compile_all",
    "intersect",
    "lookup",
    "maxima_at",
    "nest",
    "order_pairs",
    "pack_lists",
    "positions",
    "reband",
    "row_numbers",
    "sort_keys",
    "sums_at",
    "synchronize",
    "to_device",
    "to_host",
    "trim",
]
