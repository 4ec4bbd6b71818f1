"""Groups and their vertices: the members of a group, the k-truss of one k, the attributes of vertices, files of edges.

Start at `members` and `trusses`. `files` writes the edges of a group as Parquet, CSV or GraphML.
"""
