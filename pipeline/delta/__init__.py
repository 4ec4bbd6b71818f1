"""The tables of a result as Delta tables in a place that stays the same (`output.format: delta`), so that DuckDB, Spark
and pandas read the newest result without its manifest. Each result is the next version of each table.
"""
