"""Changes between two results: edges and DN-graphs that appeared, vanished, rose or fell in λ; columns of programs.

Start at `diff`. `edges`, `dn_graphs` and `vertices` find the rows that changed. Imports `results` and `queries`.
"""
