"""What happens before the first row of a run: its input and output are opened, and an earlier result is looked at.

Start with `context`, which holds what the steps of a run share. `input` opens the input; `batch` is the input of an
update, and `reading` reads the graph of an earlier result. `existing_result` tells whether the result in the output is
up to date. Imports `inputs`, `stages`, `programs`, `nightly` and the rooms that reading and writing share.
"""
