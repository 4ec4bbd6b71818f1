"""The report of a finished run as one page, report.html.

`run_report` makes it for a run that publishes, `report_file` for a finished result; start reading at `page`. The other
modules make the page's parts. `page` and what it imports need Jinja, so they are imported only when a page is made.
"""
