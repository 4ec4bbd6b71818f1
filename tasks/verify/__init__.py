"""Checks of a finished result by definition, independent of the code that made it: NumPy and Arrow alone.

May import `errors`, `ids.display`, `inputs.columns`, `inputs.finding`, `inputs.partitions`, `storage`, `tables` and
`where`, and `publish.result_columns`, where columns are declared; no kernels, nothing else of publishing, nothing of
ingest or bounding. Start with `result`, which runs all checks. `reading` and `tables` read the result; `bounds`
certifies λ. `program_checks` has a check for each program of edgemill, which the class of the program names; `result`
reads these declarations, and nothing else of `tasks.programs`.
"""
