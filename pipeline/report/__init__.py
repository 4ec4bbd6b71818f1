"""report.html: a finished run on one page. All but `written` is imported when a page is made."""
