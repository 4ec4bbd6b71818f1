"""Estimates of a graph that is read once: triangles, clustering, bounds of the largest λ, seconds of a run.

May import `run`, `programs`, `stages`, `plan`, `cluster`, `monitor` and `settings`. Start with `estimating`; `figures`
has the result, and its text.
"""
