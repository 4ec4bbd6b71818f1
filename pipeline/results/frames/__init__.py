"""Tables of a result, converted to frames and graphs of other libraries.

Start at `table` for whole tables and at `group_edges` for the edges of a group. All libraries but Arrow are optional,
and are imported when they are needed.
"""
