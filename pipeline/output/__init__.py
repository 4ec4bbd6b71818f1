"""The output of a run: locks, staging, publishing and the manifest, on a disk and in an object store.

Imports `settings` and `messages`; `output.delta`, which publishes a result as Delta tables, also imports `results`,
`nightly` and `monitor`. Start with `staging`, which selects `folder_staging` or `store_staging`. `new_path` creates
single files and folders that a user names, such as an export.
"""
