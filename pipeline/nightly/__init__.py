"""A series of nightly runs: what a night starts from, the pointer `latest`, tracks of DN-graphs, and retention.

Start with `night`. `track_assignment` assigns tracks during a run; `results.series` finds the results of other days.
"""
