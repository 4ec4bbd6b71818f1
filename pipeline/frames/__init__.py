"""Frames and graphs of other libraries: as the input of a run, and made of the tables of a result.

A module here imports such a library only when it is asked for it: all of them are optional.
"""
