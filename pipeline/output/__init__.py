"""The output of a run, on a disk and in an object store.

Start with `staging`, which collects the files of a run and publishes them. `lock` keeps other runs away, `manifest`
describes the result, `checkpoint_files` has the place, files and indexes of a checkpoint, and `new_path` creates single
files and folders that a user names, such as an export. Imports `settings` and `messages`.
"""
