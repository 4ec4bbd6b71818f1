"""Plots as documents of BokehJS, written without Bokeh's Python.

May import nothing of the project. Start with `plots`; `models` has the format.
"""
