"""Input file formats. Those that edgemill reads are modules in `shipped`; `unread` names others and the commands that
convert them.

Start with `input_format`: what a format declares, and how one is found by names, suffixes and first bytes. `parquet`
and `statistics` read Parquet, `text` CSV, TSV and JSON lines, `matrix_market` Matrix Market. `form` has how rows are
laid out. Imports `tasks.errors`, `tasks.storage`, `tasks.where` and `inputs.opening`.
"""
