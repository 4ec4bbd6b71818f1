"""λ of all edges after a batch of insertions and deletions, from λ before it and the order of peeling.

May import `kernels`, `tasks.storage`, `tasks.ids`, `tasks.graph`, `tasks.ingest`, `tasks.bound` and `tasks.programs`.
Start with `updating.update_order`, then `order`, which has the state that is kept between two batches. Programs of an
update start from `earlier_values`, and from `arcs`, the directions and weights of edges.
"""
