"""A series of nightly runs: what a night starts from, the pointer `latest`, tracks of DN-graphs, and retention.

Start with `night`. `track_assignment` assigns tracks during a run, `delta` publishes a result as new versions of Delta
tables, and `results.series` finds the results of other days. May import `stages`, `cluster`, and what reading and
writing share.
"""
