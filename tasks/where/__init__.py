"""Conditions on rows, such as `date >= '2026-11-01' and weight > 0.5`: from SQL text to an Arrow expression.

Arrow has no SQL parser, and nothing that a user writes is evaluated. Start with `condition`, which parses a text into a
tree; `expression` converts the tree and applies it. Imports `tasks.errors`.
"""
