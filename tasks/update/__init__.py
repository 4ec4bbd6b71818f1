"""λ of all edges after a batch of insertions and deletions, from λ before it and the order of peeling.

May import `kernels`. Start with `updating.update_order`, then `order`, which has the state that is kept between two
batches. `dynamic` is a graph in memory that takes batches without λ, with exact supports.
"""
