"""The model of docs/scaling.md: constants fitted to measurements, and times of clusters that nobody has measured.

Start with `scaling`, the command. `points` reads the two files and `model` fits them. `moves`, `times` and `limits` say
what a run takes; `tables` and `pictures` show it.
"""
