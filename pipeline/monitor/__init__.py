"""What a run reports while it runs: events, and their views: log, displays, metrics, status and summary.

Start with `events`, then `progress`, which folds events into the state that the views show. Imports `messages`,
`output` and `checkpoint`; `status_text` also imports `results`.
"""
