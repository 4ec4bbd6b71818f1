"""Changes between two results: edges and DN-graphs that appeared, vanished, rose or fell in λ; columns of programs.

Start at `diff`. `sorted_tables` walks two sorted tables side by side; `edge_changes`, `dn_graph_changes` and
`vertex_changes` find the rows that changed.
"""
