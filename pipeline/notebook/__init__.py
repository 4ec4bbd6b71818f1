"""The output of edgemill in notebooks: a result, and the progress of a run.

All of it is HTML without scripts. Start at `page`; `messages.html` has the styles and tables. Imports `queries`,
`report.distributions` and `monitor`.
"""
