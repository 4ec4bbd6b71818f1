"""The Python functions `mine`, `run` and one for each vertex program: their keywords, temporary results and their
copies, and arguments of queries.

Start with `mine`. `keywords` is generated from the settings. Imports `frames`, `run`, `results`, `settings`,
`programs.declared`, `cluster` and `monitor`.
"""
