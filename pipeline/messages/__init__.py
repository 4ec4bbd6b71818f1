"""The wording of messages, for terminals and notebooks.

`exits` maps exceptions to exit codes and messages, and `wording` has escaped text, numbers of bytes and suggestions.
`terminal` and `html` print text and tables. Start with `exits`. Imports no other room of `pipeline`.
"""
