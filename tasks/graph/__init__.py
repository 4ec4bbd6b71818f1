"""From the edges of a graph that one worker holds to what is bounded: supports, and the edges with triangles.

May import `kernels`, `ids`, `ingest`, `messages` and `errors`. Start with `triangulate`, which counts triangles; then
`subgraph`, which leaves out the edges without any.
"""
