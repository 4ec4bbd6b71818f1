"""Estimates of a graph from footers and samples, before it is read: edges, vertices, triangles, output bytes.

May import `ids`, `ingest.reading`, `inputs`, `messages`, `partition`, `programs` and `publish.writing`. Start with
`estimate`; `sampling` reads the sample, `counting` extrapolates counts, `witnesses` finds the
triangles of some edges. `wedges` and `cliques` estimate triangles and the largest λ of a graph that is cut into blocks.
"""
