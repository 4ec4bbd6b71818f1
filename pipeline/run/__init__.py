"""One run: from settings to a published result.

`mining` composes a run: `graph` finds the graph, `attempts` and `tables` compute its values and write the tables, with
the stages of the room `stages`. May import every other room of the pipeline but `cli`, `calls` and `dispatch`. Start
with `mining`.
"""
