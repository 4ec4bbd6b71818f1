"""Conditions on rows, such as `date >= '2026-11-01' and weight > 0.5`: from SQL's words to an Arrow expression.

Arrow has no parser of SQL, and nothing that is given is evaluated: a condition is parsed here, into a small tree.
"""
