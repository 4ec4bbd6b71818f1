"""The input of a run: finding files, reading their heads, choosing columns and types, and cutting blocks.

Imports `tasks.errors`, `storage`, `tables` and `where`; `formats` has one module for each file format. Start with
`open_source`, which makes a `Source` (`sources`) of a path. Rows are read in `tasks.ingest`.
"""
