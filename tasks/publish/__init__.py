"""From dense numbers back to ids: columns of edges and vertices, written as checksummed Parquet tables.

`columns`, `writing` and `tables` work for any columns. `lambda_columns` has the columns of λ, and `dense_tables` the
tables of DN-graphs. Imports `ids`, `graph`, `ingest`, `dense` and `storage`. Start with `columns`.
"""
