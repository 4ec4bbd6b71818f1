"""A series of nightly runs: results by date, the pointer `latest`, tracks of DN-graphs, retention and the textfile.

Start with `night`. `track_assignment` assigns tracks during a run; `overlaps` and `fates` compare the DN-graphs of two
finished results. Imports `monitor`, `output`, `results`, `settings` and the engine of `cluster`.
"""
