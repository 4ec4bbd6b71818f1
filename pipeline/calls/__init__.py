"""The Python functions `mine`, `run` and one for each vertex program: their keywords, temporary results and their
copies, and arguments of queries.

Start with `mine`. `keywords` and `programs` are generated from settings and catalogue. Imports `frames`, `run`,
`results`, `settings`, `programs.catalogue`, `cluster` and `monitor`.
"""
