"""λ of a graph that a worker holds whole: by peeling, or by the methods for study, `fixpoint` and `bisection`.

May import `kernels`, `graph`, `bands`, `ingest`, `ids`, `messages`, `device` and `errors`. Start with `peel`.
"""
