"""Input file formats: Parquet (`parquet`, `statistics`, `thrift`), Arrow (`ipc`), CSV, TSV and JSON lines (`text`),
Matrix Market (`matrix_market`). `unread` names other formats and the commands that convert them.

Imports `tasks.errors`, `tasks.storage` and `inputs.opening`. Start with `formats`, which maps suffixes to formats;
`form` has what the settings say, `layout` how rows are laid out, `pruning` skips row groups by a condition.
"""
