"""The GPU twins: CUDA kernels over CuPy arrays."""

from .cascade import Cascade
from .closing import arrange, close_rows, count_closed, merge_rows
from .compact_rows import CompactPeeling
from .fixpoint import Fixpoint
from .host_mail import HostMail, host_inbox_words
from .intersect import intersect
from .lists import pack_lists
from .lookup import lookup
from .nest import nest
from .own_memory import give_back, own_memory
from .peel import Peeling
from .places import maxima_at, positions, sums_at
from .reband import reband
from .rows import adjacency, compact, row_numbers
from .shard_mail import DirectMail, RelayedMail, ShardMailbox
from .shards import ShardPeeling
from .sort import order_pairs, sort_keys
from .tables import compile_all
from .transfer import synchronize, to_device, to_host, trim

__all__ = [
    "Cascade",
    "CompactPeeling",
    "DirectMail",
    "Fixpoint",
    "HostMail",
    "Peeling",
    "RelayedMail",
    "ShardMailbox",
    "ShardPeeling",
    "adjacency",
    "arrange",
    "close_rows",
    "compact",
    "compile_all",
    "count_closed",
    "give_back",
    "host_inbox_words",
    "intersect",
    "lookup",
    "maxima_at",
    "merge_rows",
    "nest",
    "order_pairs",
    "own_memory",
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
