"""Views of a run's events: displays, metrics, the textfile of node_exporter, and the status of an output.

Start with `progress`, which folds events into the state that the views show. Imports `events`, `messages`, `output`,
`results` and `settings`.
"""
