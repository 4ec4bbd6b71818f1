"""One run: from settings to a published result.

`mining` is a run from its start to its end: `preparing` does what comes before the first row, `full` computes
everything on a cluster, `graph` finds the graph there, and `tables` computes its values and writes the tables, with the
stages of the room `stages`. May import every other room of the pipeline but `cli`, `python_api` and `networkx_backend`.
Start with `mining`.
"""
