"""What happens before the first row of a run: its input and output are opened, and an earlier result is looked at.

Start with `checklist`, which has the steps in their order. `context` holds what they share with the rest of a run.
`input` opens the input; `batch` is the input of an update, and `reading` reads the graph of an earlier result.
`existing_result` tells whether the result in the output is up to date, and `observers` opens what shows a run to
others. Imports `cluster`, `inputs`, `stages`, `programs`, `nightly` and the rooms that reading and writing share.
"""
