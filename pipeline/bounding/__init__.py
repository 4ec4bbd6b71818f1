"""Finds λ on the cluster. Each schedule is a loop of exchanges between partitions, or of rounds between shards.

Start with `bounding`, which picks a schedule and runs it to the end; `tasks.bound` and `tasks.shards` have the work of
one worker. May import `checkpoint`, `cluster`, `events`, `output`, `plan`, `settings` and `stages`.
"""
