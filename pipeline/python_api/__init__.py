"""The Python functions `mine`, `run`, `estimate`, `update` and one for each vertex program, with their keywords.

Start with `functions`. `keywords` is generated from the settings. `update_settings` also serves the command `update`,
and loads no Dask. Imports the rest of `pipeline` except for `cli`.
"""
