"""Carriers, which exchange packets between groups of shards on different workers.

Start with `choice`, which picks the fastest carrier that all workers can use.
"""
