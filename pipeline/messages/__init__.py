"""The wording of messages: exit codes, flags and keywords in place of setting paths, suggestions, escaped text, and
the docstrings of settings.

Start with `exits`, which maps exceptions to exit codes and messages. Imports `tasks`; `setting_names` looks up names
in `settings` when it is called.
"""
