"""A finished run, opened for reading: its tables, their rows, and conversions to frames and graphs.

Start at `result`, which opens a result, then `table`. `lookup` finds rows by id, `streaming` reads a table in batches,
`series` finds the results of other nights. Queries and views of a result are in `queries`, `compare`, `report`,
`explorer` and `notebook`. May import `output`, `settings` and `messages`.
"""
