"""From owned edges to the subgraphs that are bounded: supports, ghost edges, subscribers.

May import `kernels`, `ids`, `ingest`, `messages` and `errors`. Start with `triangulate`, which counts triangles; then
`subgraph`, which builds the subgraph of a partition.
"""
