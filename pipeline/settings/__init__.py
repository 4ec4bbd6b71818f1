"""The settings of a run.

Start with `models`, which has all settings. `sources` loads them from files, flags and keywords, `values` reads what a
person wrote, `program_sections` adds the settings of programs, `dates` replaces `{date}`, and `overlap` checks that
paths do not overlap. Imports `messages`, what programs declare (`programs.declared`) and `tasks`.
"""
