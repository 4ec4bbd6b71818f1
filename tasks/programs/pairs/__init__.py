"""Values of pairs of vertices: the table of distances.

May import `programs.block`, `programs.running`, `ids`, `ingest`, `messages` and `errors`. `sending` brings them from
blocks to buckets.
"""
