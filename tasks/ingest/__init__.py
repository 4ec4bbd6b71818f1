"""From rows of files to clean, numbered edges and their owners, as plain functions that a driver chains.

May import `kernels`, `ids`, `inputs`, `partition`, `messages`, `device` and `errors`. Knows neither triangles nor λ.
Start with the list below. `pipeline/stages/ingesting.py` and `pipeline/stages/partitioning.py` are this list as code.

Blocks (runs of row groups) are read independently. Buckets (ranges of the id space) number vertices and drop repeated
edges. Partitions own edges. No task holds all edges, and the driver holds counts only. In order, with B buckets:

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
    partitioner   HashPartitioner(partitions), or RangePartitioner() for one partition, or:
    exchange 6    range_cuts.send_out_degrees   buckets → buckets: collect_out_degrees
                  sum()                      → driver: cut_targets
                  cuts_within                → driver: range_partitioner
    exchange 7    send_owned      buckets → partitions: collect_owned

In one bucket, integer ids below 2^31 whose range is at most a few times the number of rows need neither samples nor
exchanges 1 to 3: every block `read_packed`, then one task `number_packed`, which sorts the rows of all blocks. On
several GPUs such ids are packed as well. `merge_packed` then makes one block of the rows on each GPU.

Each `send_…` and `answer_…` returns one Bundle. Each receiver takes a mapping from sender to payload. Kept for
publishing: the BucketIds, BucketEdges and BucketDegrees of each bucket, and the OwnedRows of each partition.
"""

from .blocks import (
    BlockEdges,
    LocalEdges,
    PackedRows,
    choose_splitters,
    clean,
    merge_packed,
    pack,
    packed_size,
    read_block,
    read_packed,
    sample_ids,
    sample_interval,
    unpack,
    without_ids,
)
from .degrees import (
    BucketDegrees,
    Counts,
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
    number_packed,
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
    send_owned,
)

__all__ = [
    "BlockEdges",
    "BucketDegrees",
    "BucketEdges",
    "BucketIds",
    "Counts",
    "EdgeParts",
    "Histogram",
    "LocalEdges",
    "OrientedEdges",
    "OwnedEdges",
    "OwnedRows",
    "PackedRows",
    "Pairs",
    "answer_numbers",
    "answer_ranks",
    "bucket_starts",
    "choose_splitters",
    "clean",
    "collect_degrees",
    "collect_owned",
    "degree_histogram",
    "merge_packed",
    "merge_pairs",
    "number_ids",
    "number_packed",
    "order_starts",
    "orient",
    "owned_to_device",
    "pack",
    "packed_size",
    "rank_vertices",
    "read_block",
    "read_packed",
    "rows_to_publish",
    "sample_ids",
    "sample_interval",
    "send_degrees",
    "send_ids",
    "send_owned",
    "send_pairs",
    "unpack",
    "without_ids",
    "without_requests",
]
