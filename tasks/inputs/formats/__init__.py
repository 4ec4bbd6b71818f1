"""Input file formats. Those that edgemill reads are modules in `shipped`; `formats` finds them by names, suffixes and
first bytes, and `unread` names others and the commands that convert them.

`parquet`, `statistics`, `thrift` read Parquet, `text` CSV, TSV and JSON lines, `matrix_market` Matrix Market. `form`
has what the settings say, `layout` how rows are laid out, `pruning` skips row groups by a condition. Imports
`tasks.errors`, `tasks.storage` and `inputs.opening`. Start with `input_format`: what a format declares.
"""
