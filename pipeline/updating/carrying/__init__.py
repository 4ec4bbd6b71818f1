"""A night without change: the files of an earlier result become those of today's.

`unchanged` decides by the input's files and settings, before Dask and the kernels are imported. `beginning` compares
rows, and loads kernels only where many of them differ. The rooms `tasks.update.state_index` and `tasks.storage` have
what both need of files. Start with `unchanged`.
"""
