"""A finished run, opened for reading: tables, queries, comparisons, the report, the explorer, notebooks.

Start at `result`, which opens a result and its tables. `queries` finds dense groups, `groups` their members, `compare`
the changes between two results. `summary` prints a result in a terminal; `report`, `explore` and `notebook` show it in
a browser. May import `tasks` and the rooms of `pipeline` for output, settings, messages and monitoring.
"""
