"""The output of edgemill in notebooks: a result, a record of its manifest, and the progress of a run.

All of it is HTML without scripts. Start at `page`; `html` has the styles and tables that the others use.
"""
