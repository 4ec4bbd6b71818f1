"""report.html: a finished run on one page. All but `written` import Bokeh, and are imported when a page is made."""
