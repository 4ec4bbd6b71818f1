"""From rows of files to clean, numbered edges, as plain functions that a driver chains.

May import `kernels`, `ids`, `inputs`, `messages`, `device` and `errors`. Knows neither triangles nor λ. Start with the
list below. `pipeline/stages/ingesting.py` and `pipeline/stages/partitioning.py` are this list as code.

Blocks (runs of row groups) are read independently. Buckets (ranges of the id space) number vertices and drop repeated
edges. The driver holds counts only. In order, with B buckets:

    every block   read_block
                  sample_ids                 → driver: choose_splitters
    exchange 1    send_ids        blocks  → buckets: number_ids
    every block   without_ids
                  len()                      → driver: bucket_starts
    exchange 2    answer_numbers  buckets → blocks
    exchange 3    send_pairs      blocks  → buckets: merge_pairs
    exchange 4    send_degrees    buckets → buckets: collect_degrees
                  degree_histogram           → driver: order_starts
                  rank_vertices
    exchange 5    answer_ranks    buckets → buckets: orient
    exchange 6    send_all        buckets → the only partition: collect_owned; shards: tasks/shards/supports.py

Integer ids below 2^31 whose range is at most a few times the number of rows are packed on GPUs (`packed`):
`read_packed` reads every block, and the `facts_of` each block, with samples, go to the driver. In one bucket,
`number_packed` sorts the rows of all blocks, without an exchange. In several, one exchange replaces the first three:

    exchange 1-3  send_keys       blocks  → buckets: number_keys

In one bucket `number_wide` takes other integers without an exchange, too.

Each `send_…` and `answer_…` returns one Bundle. Each receiver takes a mapping from sender to payload. Kept for
publishing: the BucketIds, BucketEdges and BucketDegrees of each bucket, and the OwnedRows of each partition or group.
"""

from .blocks import (
    BlockEdges,
    LocalEdges,
    choose_splitters,
    clean,
    read_block,
    sample_ids,
    sample_interval,
    without_ids,
)
from .degrees import (
    BucketDegrees,
    DegreeCounts,
    Histogram,
    OrientedEdges,
    answer_ranks,
    collect_degrees,
    degree_histogram,
    order_starts,
    orient,
    rank_vertices,
    send_degrees,
)
from .numbering import (
    BucketEdges,
    BucketIds,
    Pairs,
    answer_numbers,
    bucket_starts,
    merge_pairs,
    number_ids,
    send_ids,
    send_pairs,
    without_requests,
)
from .ownership import (
    EdgeParts,
    OwnedEdges,
    OwnedRows,
    collect_owned,
    owned_to_device,
    rows_to_publish,
    send_all,
)
from .packed import (
    PackedFacts,
    PackedRows,
    WideRows,
    facts_of,
    number_keys,
    number_packed,
    number_wide,
    pack,
    read_packed,
    send_keys,
    unpack,
)

__all__ = [
    "BlockEdges",
    "BucketDegrees",
    "BucketEdges",
    "BucketIds",
    "DegreeCounts",
    "EdgeParts",
    "Histogram",
    "LocalEdges",
    "OrientedEdges",
    "OwnedEdges",
    "OwnedRows",
    "PackedFacts",
    "PackedRows",
    "Pairs",
    "WideRows",
    "answer_numbers",
    "answer_ranks",
    "bucket_starts",
    "choose_splitters",
    "clean",
    "collect_degrees",
    "collect_owned",
    "degree_histogram",
    "facts_of",
    "merge_pairs",
    "number_ids",
    "number_keys",
    "number_packed",
    "number_wide",
    "order_starts",
    "orient",
    "owned_to_device",
    "pack",
    "rank_vertices",
    "read_block",
    "read_packed",
    "rows_to_publish",
    "sample_ids",
    "sample_interval",
    "send_all",
    "send_degrees",
    "send_ids",
    "send_keys",
    "send_pairs",
    "unpack",
    "without_ids",
    "without_requests",
]
