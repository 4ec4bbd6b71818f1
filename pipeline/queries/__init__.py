"""Questions to one result: groups and their members, k-trusses, attributes, columns of programs, plots.

Start at `groups` and `trusses`. `group_files` writes the edges of a group as Parquet, CSV or GraphML; `group_tables`
and `program_columns` prepare what a terminal, the report and the explorer show. Imports `results`.
"""
