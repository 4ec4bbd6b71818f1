"""Estimates of a graph from footers and samples, before it is read: edges, vertices, copies of edges, output bytes.

May import `ids`, `ingest.reading`, `inputs`, `messages`, `partition`, `programs` and `publish.writing`. Start with
`estimate`; `sampling` reads the sample, `counting` extrapolates counts, `replication` estimates the copies of edges
over partitions. `wedges` and `cliques` estimate triangles and the largest λ of a graph that is cut into blocks.
"""
