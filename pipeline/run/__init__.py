"""One run: from settings to a published result.

Start with `mining`, a run from its start to its end; what it does before the first row is `opening.checklist`. `full`
finds the graph on a cluster and computes everything there, and `tables` computes the values and writes the tables, with
the stages of the room `stages`. May import every other room of the pipeline but `cli`, `python_api` and
`networkx_backend`.
"""
