"""Peeling in bands of λ: a coarse filter that all workers run together, then bands that each worker peels alone.

May import `kernels`, `tasks.graph`, `tasks.bound` and `tasks.shards`. Start with `filtering`, the coarse filter;
`sums` adds up what all workers have lowered, and `peeling` peels one band. `remainder` takes over the edges that shards
leave. docs/bands.md has the method.
"""
