"""λ of the new graph: whether it is found from what changed, the search, and its result in a checkpoint.

May import what `updating` may. Start with `finding_lambda`.
"""
