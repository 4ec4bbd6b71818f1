"""The settings of a run.

Start with `models`, which has all settings. `sources` loads them from files, flags and keywords, `values` reads what a
person wrote, `declared_programs` finds programs by their names, `dates` replaces `{date}`, `overlap` checks that paths
do not overlap, and `setting_names` writes settings in messages as flags or keywords. Imports `messages` and `tasks`.
"""
