"""Changes between two results: edges and DN-graphs that appeared, vanished, rose or fell in λ.

Start at `diff`. `sorted_tables` walks two sorted tables side by side; `edge_changes` and `dn_graph_changes` find the
rows that changed.
"""
