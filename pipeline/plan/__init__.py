"""The plan of a run, made before it starts: partitions, tasks, projected memory. A plan that cannot fit is refused.

Start with `choice`, which makes a plan from footers, workers and a sample. A plan adds up what the stages tell of
themselves; `seconds` predicts how long they take. May import `inputs`, `stages`, `programs` and `cluster`.
"""
