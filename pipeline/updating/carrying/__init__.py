"""A night without change: today's input and settings are those of the earlier result, and its files become today's.

`unchanged` decides and does it, before Dask and the kernels are imported. The rooms `tasks.update.state_index` and
`tasks.storage` have what it needs of files. Start with `unchanged`.
"""
