"""Conditions on rows, such as `date >= '2026-11-01' and weight > 0.5`: from SQL text to an Arrow expression.

Arrow has no SQL parser, and nothing that a user writes is evaluated. Start with `condition`, which parses the tokens of
`words` into a tree; `expression` converts the tree, `filter` applies it, `partitions` reads values from paths. Imports
`tasks.errors`.
"""
