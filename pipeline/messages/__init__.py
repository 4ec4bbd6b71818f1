"""The wording of messages.

`exits` maps exceptions to exit codes and messages, `setting_names` replaces the paths of settings by flags or keywords,
and `wording` has escaped text, numbers of bytes and suggestions. Start with `exits`. Imports `tasks`; `setting_names`
looks up names in `settings` when it is called.
"""
