"""Batches of changed edges: the input of `edgemill update`.

May import what `updating` may. Start with `batch_input`; `needed` tells what a result must keep for it, and
`stored_rows` writes the rows of a new graph where these have to be read, by a full run or by vertex programs.
"""
