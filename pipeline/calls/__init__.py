"""The Python function `mine`: its keywords, temporary results and their copies, and arguments of
queries.

Start with `mine`. `keywords` is generated from the settings. Imports `frames`, `run`, `results`, `settings`, `cluster`
and `monitor`.
"""
