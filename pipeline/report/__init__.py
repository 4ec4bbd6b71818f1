"""The report of a finished run as one page, report.html.

`report` makes it for a run that publishes and for a finished result; read `page` next. The other modules make the
page's sections and charts. `page` and what it imports need Jinja, so they are imported only when a page is made.
Imports `compare`, `queries` and `results`.
"""
