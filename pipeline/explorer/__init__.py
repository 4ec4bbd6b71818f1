"""The explorer: a finished run as an interactive page in a browser.

`server.explore` serves it. Start reading at `server`, whose docstring lists the requests, then `api`, which answers
them. `queries` reads the result's tables within bounds; `drawing` and `tree` make the larger answers. `static/` holds
the page. Imports `queries` and `results`.
"""
