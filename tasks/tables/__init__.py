"""Delta and Iceberg tables as inputs: the Parquet files that hold the rows of one version, and no others."""
