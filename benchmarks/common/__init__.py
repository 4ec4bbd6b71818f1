"""What the benchmarks share: graphs, the machine, timed commands and tables.

Start with `graphs`, which makes the graphs by name.
"""
