"""What one worker does to one block, bucket, partition or shard: functions over arrays and Arrow tables.

No task knows a cluster: each runs in a test without one. May import `kernels`. The rooms follow the way of an edge:
`inputs`, `ids`, `ingest`, `graph` or `shards`, `bound`, `dense`, `publish`. Start with `ingest`.
"""
