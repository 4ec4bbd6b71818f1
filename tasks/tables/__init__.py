"""Delta and Iceberg tables as inputs: the Parquet files with the rows of one version.

Imports `tasks.errors` and `storage`; deltalake and pyiceberg only if there is such a table. Start with `finding`, whose
`table_at` recognizes a table; `delta` and `iceberg` list its files as `live.LiveFiles`.
"""
