"""Estimates of a graph from footers and samples, before it is read: edges, vertices, triangles, output bytes.

May import `ids`, `ingest.reading`, `inputs`, `messages`, `partition`, `programs` and `publish.writing`. Start with
`estimate`; `sampling` reads the sample and estimates counts from it. `wedges` and `cliques` estimate triangles and the
largest λ of a graph that is cut into blocks.
"""
