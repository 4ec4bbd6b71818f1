"""The settings of a run: their models (`*_settings`, combined in `models`), loading and validation (`sources`), the
placeholder `{date}` (`dates`), and checks that paths do not overlap (`overlap`).

Imports `messages`, what programs declare (`programs.declared`) and `tasks`. Start with `models`.
"""
