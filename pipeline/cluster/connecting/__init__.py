"""Starts clusters and joins running ones: addresses, TLS, worker processes, and the wait for workers.

Start with `start.connect`, which returns a client of the cluster that the settings name. May import `settings`.
"""
