"""The plan of a run, made before it starts: partitions, tasks, projected memory. A plan that cannot fit is refused.

Start with `choice`, which makes a plan from footers, workers and a sample. A plan adds up the tasks and bytes that the
stages predict for themselves; `seconds` predicts how long they take. May import `inputs`, `stages`, `programs` and
`cluster`.
"""
