"""Synthetic graphs with known properties, written as Parquet.

May import `errors`, `ids.splitmix64` and `storage`. Start with `generate`; `kinds` has a class for each family of
graphs.
"""
