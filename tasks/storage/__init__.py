"""Files and folders: on disks and in object stores, created atomically, with checksums, and with arrays in them.

Imports `tasks.errors` and `kernels` only, and knows nothing of graphs. Start with `folders`, one interface
to a folder on a disk and in a store. `own_files` creates files that are safe from other users, `atomic` replaces files
and folders, `checksums` and `parquet_checksum` detect damage, `array_files` stores dataclasses with arrays, `thrift`
reads and writes footers of Parquet files.
"""
