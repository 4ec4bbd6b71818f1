"""The tables of a result as Delta tables in a fixed folder (`output.format: delta`).

DuckDB, Spark and pandas read the newest result there without its manifest. Each result is the next version of each
table. Imports `results`, `nightly`, `monitor` and the rest of `output`. Start with `publishing`.
"""
